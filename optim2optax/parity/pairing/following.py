"""What an expression of a tree depends on: its names are followed to what they are bound to.

Files are read as syntax trees, and none of their code is run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from codemods.inference.binding import Bound, bind, signature_of
from codemods.inference.reading import Binding, Index, Reader
from codemods.inference.scopes import Scope
from codemods.removed import table
from codemods.sources.modules import Unit
from codemods.sources.notebook import python_of, read_notebook
from codemods.vocabulary import words
from optim2optax.parity.optimizer.harmless import may_have_effects
from optim2optax.parity.optimizer.sampling import (
    KNOWN_MODULES,
    TRAVERSALS,
    constructor,
)

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
BoundTo: TypeAlias = ast.expr | Definition | Unit | str | None
"""What a name is bound to: an expression, a definition, a module of the project, or the dotted name
of something in a package; None if that is not known."""

FOLLOWED = frozenset(KNOWN_MODULES) - {"jnp", "np", "onp", "optim"}
"""The packages whose names are written out, however a file imports them."""

MUTATING = words("add append clear extend insert pop remove setdefault sort update")
Become: TypeAlias = Mapping[ast.expr, str]
"""What some expressions of the old tree are in the new one."""

NOTHING: Become = MappingProxyType({})


@dataclass(frozen=True)
class Slice:
    """An expression with the values of its names in their place, and what it reaches.

    `definitions` are the functions and classes, by name, in an order in which they can run. A
    name whose value is not known stays. `reached` are the nodes that went into it.
    """

    expression: str
    definitions: dict[str, str]
    reached: tuple[ast.AST, ...] = field(compare=False)


class Tree:
    """The files of a project, and what their names are bound to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._units: dict[Path, Unit | None] = {}
        self._scopes: dict[ast.AST, Scope] = {}
        self._modules: dict[Unit, Scope] = {}
        self._index = Index()
        self._changed: set[tuple[Scope | None, str]] = set()

    def mentions(self, path: Path, word: bytes) -> bool:
        """Whether the bytes of a file have a word; False if there is no file."""
        return path.is_file() and word in path.read_bytes()

    def unit(self, path: Path) -> Unit | None:
        """A file; None if there is none, or if it cannot be read as Python."""
        if path not in self._units:
            try:
                self._units[path] = self.add(path, path.read_bytes())
            except (OSError, SyntaxError, ValueError):
                self._units[path] = None
        return self._units[path]

    def add(self, path: Path, content: bytes) -> Unit:
        """A file with this content. Raises SyntaxError or ValueError."""
        is_notebook = path.suffix == ".ipynb"
        places = read_notebook(content).places if is_notebook else ()
        text = content.decode("utf-8-sig", "replace")
        code = python_of(content) if is_notebook else text
        unit = Unit(str(path), code, ast.parse(code), places)
        self._modules[unit] = Reader(unit, self._scopes, self._index).contents.scope
        for node in unit.nodes:
            name = _changed_by(node)
            if name is not None:
                owner = self._scopes[name].binding(name.id)
                self._changed.add((owner, name.id))
        return unit

    def place(self, text: str, at: ast.AST) -> ast.expr:
        """An expression that is as if it stood where a node stands."""
        found = ast.parse(f"({text})", mode="eval").body
        self._scopes.update((inner, self._scopes[at]) for inner in ast.walk(found))
        return found

    def bound(self, name: ast.Name) -> tuple[Scope, BoundTo] | None:
        """The scope in which a name is bound, and to what; None if the file has no such name."""
        scope = self._scopes[name].binding(name.id)
        return None if scope is None else (scope, self._bound_in(scope, name.id))

    def of_module(self, unit: Unit, name: str) -> BoundTo:
        """What a name of a module is bound to."""
        return self._bound_in(self._modules[unit], name)

    def given(self, scope: Scope, name: str) -> ast.expr | None:
        """What all calls in the file give a parameter of a function, if that is the same text."""
        function = scope.node
        if not isinstance(function, ast.FunctionDef):
            return None
        signature = signature_of(function.args)
        found: dict[str, ast.expr] = {}
        for use in scope.unit.nodes:
            if not isinstance(use, ast.Name) or use.id != function.name:
                continue
            owner = self.bound(use)
            if owner is None or owner[1] is not function:
                continue
            call = scope.unit.call_of(use)
            # train(create_optimizer): it is called elsewhere
            bound = None if call is None else bind(signature, call)
            if not isinstance(bound, Bound) or bound.unpacked:
                return None
            value = bound.complete.get(name)
            if value is None:
                return None
            found[ast.unparse(value)] = value
        return next(iter(found.values())) if len(found) == 1 else None

    def _bound_in(self, scope: Scope, name: str) -> BoundTo:
        """What a name is bound to; a name that is bound twice may have either value."""
        bindings = self._index.bindings.get((scope, name), [])
        if len(bindings) != 1 or (scope, name) in self._changed:
            return None
        match bindings[0]:
            case Binding(node=ast.ImportFrom() as node, alias=ast.alias() as alias):
                return self._imported(scope, node.module or "", alias.name, node.level)
            # `import jax.numpy` binds `jax`.
            case Binding(alias=ast.alias(name=module, asname=asname)):
                return self._imported(scope, module if asname else top_level(module))
            case Binding(
                node=(
                    ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()
                ) as definition
            ):
                return definition
            # optimizer_def = optim.Adam(1e-3)
            case Binding(source=ast.expr() as value, steps=()):
                return value
            # rate, decay = 1e-3, 0.9
            case Binding(source=ast.Tuple(elts=values), steps=[("item", int(place))]):
                if not any(isinstance(value, ast.Starred) for value in values):
                    return values[place]
        return None

    def _imported(
        self, scope: Scope, module: str, name: str = "", level: int = 0
    ) -> BoundTo:
        """A module that is imported, or a name in it. `level` is the number of dots in front."""
        whole = ".".join(part for part in (module, name) if part)
        if top_level(module) in FOLLOWED and not level:
            return whole
        path = Path(scope.unit.path)
        home = self._module(module, level, path) if name else None
        bound = None if home is None else self.of_module(home, name)
        # from . import settings
        return self._module(whole, level, path) if bound is None else bound

    def _module(self, name: str, level: int, path: Path) -> Unit | None:
        """The module that an import in the file at `path` means, if it is one of the project."""
        folders = [
            folder for folder in path.parents if folder.is_relative_to(self.root)
        ]
        # `from ..models import x` means one folder, `from models import x` may mean any around.
        if level:
            folders = folders[level - 1 : level]
        for folder in folders:
            place = folder.joinpath(*filter(None, name.split(".")))
            for found in (place.with_suffix(".py"), place / "__init__.py"):
                if found.is_file():
                    return self.unit(found)
        return None

    def slice(
        self,
        node: ast.expr,
        kept: frozenset[str] = frozenset(),
        in_callers: bool = False,
        become: Become = NOTHING,
    ) -> Slice:
        """An expression, and the code that it depends on; the names in `kept` stay.

        Parameters stay too, unless they are to be followed to what all calls in the file give
        them. Some nodes `become` other source texts.
        """
        follower = _Follower(self, kept, in_callers, become)
        expression = ast.unparse(ast.fix_missing_locations(follower.copied(node)))
        return Slice(expression, follower.definitions, tuple(follower.reached))

    def definition(self, node: Definition) -> str:
        """The code of a function or class as it is among the definitions of a slice."""
        follower = _Follower(self, frozenset(), False, NOTHING)
        return follower.definitions[follower.defined(node)]


class _Follower:
    """Copies expressions, with the values of their names in the place of the names.

    `definitions` and `reached` collect the functions and classes, and the nodes, that went into
    the copies. `_named` has the definitions by the names that they get, `_inside` the bindings
    that are being copied, among which a recursion ends.
    """

    def __init__(
        self,
        tree: Tree,
        kept: frozenset[str],
        in_callers: bool,
        become: Become,
    ) -> None:
        self.tree = tree
        self.kept = kept
        self.in_callers = in_callers
        self.become = become
        self.definitions: dict[str, str] = {}
        self.reached: list[ast.AST] = []
        self._named: dict[str, ast.AST] = {}
        self._inside: list[ast.AST] = []

    def copied(self, node: Any) -> Any:
        """A copy of any node or field, without annotations, which need not be defined."""
        if isinstance(node, list):
            return [self.copied(item) for item in node]
        if not isinstance(node, ast.AST):
            return node
        if isinstance(node, ast.expr) and node in self.become:
            node = self.tree.place(self.become[node], node)
        # a traversal becomes its predicate
        elif self.become and constructor(node) in TRAVERSALS:
            match node:
                case ast.Call(args=[predicate], keywords=[]):
                    return self.copied(predicate)
        value = self._value(node)
        if value is not None:
            return value
        found = copy.copy(node)
        for name, part in ast.iter_fields(node):
            # An `AnnAssign` cannot do without an annotation: `rate: None = 1e-3`.
            is_needed = isinstance(node, ast.AnnAssign)
            nothing = ast.Constant(None) if is_needed else None
            is_annotation = name in ("annotation", "returns")
            setattr(found, name, nothing if is_annotation else self.copied(part))
        # optax.additive_weight_decay
        row = (
            table().get(ast.unparse(found))
            if isinstance(found, ast.Attribute)
            else None
        )
        if row is not None and row.how == "same":
            return ast.parse(row.to, mode="eval").body
        return found

    def _value(self, node: ast.AST) -> ast.AST | None:
        """A copy of what a name, or an attribute of a module, is bound to, if that is known."""
        match node:
            # `settings.RATE`, after `import settings` or `from . import settings`
            case ast.Attribute(value=ast.Name() as name, attr=attribute):
                module = self._bound(name)
                if isinstance(module, Unit):
                    return self._copied_bound(self.tree.of_module(module, attribute))
            case ast.Name(ctx=ast.Load()):
                return self._copied_bound(self._bound(node))
        return None

    def _bound(self, name: ast.Name) -> BoundTo:
        found = None if name.id in self.kept else self.tree.bound(name)
        if found is None:
            return None
        scope, bound = found
        # A local name of a function that is copied as a whole stays.
        around = (scope.node, *scope.unit.ancestors(scope.node))
        if any(inner in around for inner in self._inside):
            return None
        if bound is None and self.in_callers:
            return self.tree.given(scope, name.id)
        return bound

    def _copied_bound(self, bound: BoundTo) -> ast.AST | None:
        """A copy of what a name is bound to; for a function or class, its name."""
        if isinstance(bound, str):
            return ast.parse(bound, mode="eval").body
        if isinstance(bound, Definition):
            return ast.Name(self.defined(bound), ast.Load())
        if bound is None or isinstance(bound, Unit) or bound in self._inside:
            return None
        value: ast.expr = self._within(bound)
        if may_have_effects(value):
            return None
        self.reached.append(bound)
        return value

    def _within(self, node: ast.AST) -> Any:
        """A copy of what is looked into, in which the recursion ends."""
        self._inside.append(node)
        found = self.copied(node)
        self._inside.pop()
        return found

    def defined(self, node: Definition) -> str:
        """The name under which a function or class is among the definitions.

        Of two that have the same name, the second one gets a new name.
        """
        for name, known in self._named.items():
            if known is node:
                return name
        name = node.name
        if name in self._named:
            name = f"{name}_{len(self._named)}"
        self._named[name] = node
        self.reached.append(node)
        found: Definition = self._within(node)
        found.name = name
        if ast.get_docstring(found) is not None:
            found.body = found.body[1:] or [ast.Pass()]
        self.definitions[name] = ast.unparse(ast.fix_missing_locations(found))
        return name


def _changed_by(node: ast.AST) -> ast.Name | None:
    """The name of what a statement changes in place."""
    match node:
        # settings.update(rate=1e-3)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name() as name, attr=attribute))
        ) if attribute in MUTATING:
            return name
        # settings["rate"] = 1e-3; del settings.rate
        case (
            ast.Subscript(value=ast.Name() as name, ctx=ast.Store() | ast.Del())
            | ast.Attribute(value=ast.Name() as name, ctx=ast.Store() | ast.Del())
        ):
            return name
    return None


def top_level(module: str) -> str:
    return module.partition(".")[0]
