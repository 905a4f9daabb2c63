"""What an expression of a file depends on: its names are followed to their definitions.

No code of the file is run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from codemods.sources.notebook import python_of
from optim2optax.parity.harmless import calls_out

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef
Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Scope: TypeAlias = ast.Module | Definition | ast.Lambda | Comprehension


@dataclass(frozen=True)
class Imported:
    """A module that is imported, or a name in it. `level` is the number of dots in front."""

    module: str
    name: str = ""
    level: int = 0


Bound: TypeAlias = ast.expr | Definition | Imported | None
"""What a name is bound to: an expression, a definition or an import; None if that is not known."""

FOLLOWED = frozenset(
    {"collections", "dataclasses", "flax", "functools", "jax", "math", "numpy", "optax", "typing"}
)
"""The packages whose names are written out, however a file imports them."""

MUTATING = frozenset(
    {"add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "sort", "update"}
)


@dataclass(frozen=True)
class Slice:
    """An expression with the values of its names in their place, and what it reaches.

    `definitions` are the functions and classes, by name, in an order in which they can run. A
    name whose value is not known stays.
    """

    expression: str
    definitions: tuple[tuple[str, str], ...] = ()


@dataclass
class Tree:
    """The files of a project, some with other contents than on the disk.

    Notebooks are the code of their cells.
    """

    root: Path
    contents: Mapping[Path, bytes] = field(default_factory=dict)
    _known: dict[Path, Definitions | None] = field(default_factory=dict)

    def file(self, path: Path) -> Definitions | None:
        """The names of a file; None if there is none, or if it cannot be read as Python."""
        if path not in self._known:
            try:
                self._known[path] = Definitions(self.text(path), path, self)
            except (SyntaxError, ValueError):
                self._known[path] = None
        return self._known[path]

    def text(self, path: Path) -> str:
        """The code of a file; empty if there is none, or if it cannot be read."""
        try:
            content = self.contents[path] if path in self.contents else path.read_bytes()
        except OSError:
            return ""
        if path.suffix == ".ipynb":
            return python_of(content)
        return content.decode("utf-8-sig", "replace")

    def module(self, name: str, level: int, path: Path) -> Definitions | None:
        """The module that an import in the file at `path` means, if it is one of the project."""
        folders = [folder for folder in path.parents if folder.is_relative_to(self.root)]
        # `from ..models import x` means one folder, `from models import x` may mean any around.
        for folder in folders[level - 1 : level] if level else folders:
            place = folder.joinpath(*name.split(".")) if name else folder
            for found in (place.with_suffix(".py"), place / "__init__.py"):
                if found in self.contents or found.is_file():
                    return self.file(found)
        return None


class Definitions:
    """The names of one file, by scope."""

    def __init__(self, source: str, path: Path | None = None, project: Tree | None = None) -> None:
        self.tree = ast.parse(source)
        self._path, self._project = path, project
        self._parents = _parents_within(self.tree)

    def slice_of(self, node: ast.expr) -> Slice:
        """An expression of this file, and the code that it depends on."""
        found, definitions, _ = self.followed(node)
        return Slice(ast.unparse(found), definitions)

    def followed(
        self, node: ast.expr
    ) -> tuple[ast.expr, tuple[tuple[str, str], ...], list[ast.AST]]:
        """Expression and definitions as `slice_of` has them, and the nodes that went into both."""
        follower = _Follower(self)
        expression = follower.copied(node)
        return expression, tuple(follower.definitions.items()), follower.reached

    def slice_of_text(self, text: str, line: int, kept: frozenset[str] = frozenset()) -> Slice:
        """What an expression would depend on if it stood at a line; the names in `kept` stay."""
        node = ast.parse(f"({text})", mode="eval").body
        self._parents |= _parents_within(node)
        self._parents[node] = self.scope_at(line)
        follower = _Follower(self, kept)
        expression = ast.unparse(follower.copied(node))
        return Slice(expression, tuple(follower.definitions.items()))

    def scope_at(self, line: int) -> ast.AST:
        """The innermost function or class that a line belongs to, else the module."""
        definitions = (node for node in ast.walk(self.tree) if isinstance(node, Definition))
        around = (node for node in definitions if node.lineno <= line <= (node.end_lineno or line))
        return max(around, key=lambda node: node.lineno, default=self.tree)

    def path(self, node: ast.AST) -> str:
        """The names of the functions and classes around a node, with dots between."""
        around = (node, *self.ancestors(node))
        names = [scope.name for scope in around if isinstance(scope, Definition)]
        return ".".join(reversed(names))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def dotted(self, node: ast.expr) -> str:
        """A name or attribute in full, such as `optax.adam`; empty for any other expression."""
        return self.slice_of(node).expression if isinstance(node, ast.Name | ast.Attribute) else ""

    def lookup(self, name: ast.Name) -> tuple[ast.AST, Bound] | None:
        """The scope in which a name is bound, and to what; None if the file has no such name."""
        below: ast.AST = name
        inside_function = False
        for scope in self.ancestors(name):
            is_seen = isinstance(scope, Scope) and not _is_ahead(below, scope)
            # A method does not see the names of its class.
            if is_seen and not (inside_function and isinstance(scope, ast.ClassDef)):
                bound = self._bindings.get(scope, {}).get(name.id)
                if bound is not None:
                    # A name that is bound twice may have either value.
                    return scope, bound[0] if len(bound) == 1 else None
            inside_function = inside_function or (is_seen and not isinstance(scope, ast.ClassDef))
            below = scope
        return None

    def imported(self, module: str, level: int) -> Definitions | None:
        """The file of the project that an import means."""
        if self._project is None or self._path is None:
            return None
        return self._project.module(module, level, self._path)

    def of_module(self, name: str) -> Bound:
        """The value or definition that a name of the module itself is bound to."""
        bound = self._bindings.get(self.tree, {}).get(name, [])
        return bound[0] if len(bound) == 1 else None

    @cached_property
    def _bindings(self) -> dict[ast.AST, dict[str, list[Bound]]]:
        """The bindings of each name, by the scope that it is in."""
        found: dict[ast.AST, dict[str, list[Bound]]] = {}
        for node in ast.walk(self.tree):
            for name, bound in _bound_by(node):
                found.setdefault(self._scope_of(node), {}).setdefault(name, []).append(bound)
        for node in ast.walk(self.tree):
            for name in _changed_by(node):
                # Which of the scopes around has this name does not matter: none is known then.
                for scope in self.ancestors(node):
                    if name in found.get(scope, {}):
                        found[scope][name].append(None)
        return found

    def _scope_of(self, node: ast.AST) -> ast.AST:
        """The scope of the names that a node binds; comprehensions and lambdas are scopes."""
        scopes = (scope for scope in self.ancestors(node) if isinstance(scope, Scope))
        return next(scopes, self.tree)


def _parents_within(root: ast.AST) -> dict[ast.AST, ast.AST]:
    """The parent of each node below a root."""
    return {child: node for node in ast.walk(root) for child in ast.iter_child_nodes(node)}


def _bound_by(node: ast.AST) -> Iterator[tuple[str, Bound]]:
    """The names that a node itself binds, each with its value, or None if that is not known."""
    match node:
        # optimizer_def = optim.Adam(1e-3)
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.NamedExpr(target=ast.Name(id=name), value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            yield name, value
        # rate, decay = 1e-3, 0.9
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(
            targets
        ) == len(values):
            for target, value in zip(targets, values, strict=True):
                if isinstance(target, ast.Name):
                    yield target.id, value
                else:
                    yield from ((name, None) for name in _stored_in(target))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, node
        case ast.Import() | ast.ImportFrom():
            yield from _imported_by(node)
        case _:
            yield from ((name, None) for name in _bound_without_value(node))


def _bound_without_value(node: ast.AST) -> Iterator[str]:
    """The names that a node binds to values that are not known."""
    match node:
        # a = b = 1; rate, decay = settings; del rate
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            for target in targets:
                yield from _stored_in(target)
        # step += 1; for step in range(9): ...; with open(path) as file: ...
        case (
            ast.AugAssign(target=target)
            | ast.For(target=target)
            | ast.AsyncFor(target=target)
            | ast.comprehension(target=target)
            | ast.withitem(optional_vars=ast.expr() as target)
        ):
            yield from _stored_in(target)
        # except ValueError as name; case [*name]; def f(name)
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.arg(arg=name)
        ):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def _imported_by(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Bound]]:
    """The names that an import binds."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield (
                alias.asname or alias.name,
                Imported(node.module or "", alias.name, node.level),
            )
        elif alias.asname:
            yield alias.asname, Imported(alias.name)
        else:
            # `import jax.numpy` binds `jax`.
            yield _root(alias.name), Imported(_root(alias.name))


def _stored_in(target: ast.expr) -> Iterator[str]:
    """The names in a target that are assigned to, or deleted."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and not _is_load(node):
            yield node.id


def _changed_by(node: ast.AST) -> Iterator[str]:
    """The names of what a statement changes in place, and of what a function binds elsewhere."""
    match node:
        # settings.update(rate=1e-3)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute))):
            if attribute in MUTATING:
                yield name
        # settings["rate"] = 1e-3; del settings["rate"]
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        # settings.rate = 1e-3
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def _is_ahead(node: ast.AST, scope: ast.AST) -> bool:
    """Whether a part of a scope is evaluated outside of it, such as defaults and decorators."""
    match scope:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return node is scope.args or node in scope.decorator_list
        case ast.Lambda():
            return node is scope.args
        case ast.ClassDef():
            return node in (*scope.decorator_list, *scope.bases, *scope.keywords)
    return False


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _root(module: str) -> str:
    return module.partition(".")[0]


def _joined(module: str, name: str) -> str:
    """A dotted name; either part may be empty."""
    return ".".join(filter(None, (module, name)))


class _Follower:
    """Copies expressions, with the values of their names in the place of the names.

    `definitions` and `reached` collect the functions and classes, and the nodes, that went into
    the copies. `_named` has the definitions by the names that they get, `_inside` the bindings
    that are being copied, among which a recursion ends.
    """

    def __init__(self, module: Definitions, kept: frozenset[str] = frozenset()) -> None:
        self.module = module
        self.kept = kept
        self.definitions: dict[str, str] = {}
        self.reached: list[ast.AST] = []
        self._named: dict[str, ast.AST] = {}
        self._inside: list[ast.AST] = []

    def copied(self, node: ast.expr) -> ast.expr:
        """A copy of an expression of the file."""
        found: ast.expr = ast.fix_missing_locations(self._copied(node))
        return found

    def _copied(self, node: Any) -> Any:
        """A copy of any node, without annotations, which need not be defined."""
        if isinstance(node, ast.Name):
            return self._of_name(node) if _is_load(node) else copy.copy(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found = self._of_module(node, node.value)
            if found is not None:
                return found
        found = copy.copy(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                items = [self._copied(one) if isinstance(one, ast.AST) else one for one in value]
                setattr(found, name, items)
            elif name in ("annotation", "returns"):
                # An `AnnAssign` cannot do without an annotation: `rate: None = 1e-3`.
                nothing = ast.Constant(None) if isinstance(node, ast.AnnAssign) else None
                setattr(found, name, nothing)
            elif isinstance(value, ast.AST):
                setattr(found, name, self._copied(value))
        return found

    def _of_module(self, node: ast.Attribute, name: ast.Name) -> ast.AST | None:
        """What an attribute of another module of the project is bound to there."""
        match self.module.lookup(name):
            # `settings.RATE`, after `import settings` or `from . import settings`
            case (_, Imported(module, attribute, level)) if _root(module) not in FOLLOWED:
                home = self.module.imported(_joined(module, attribute), level)
                return self._elsewhere(home, node.attr) if home is not None else None
        return None

    def _elsewhere(self, home: Definitions, name: str) -> ast.AST | None:
        """What a name of another module is bound to there."""
        here, self.module = self.module, home
        try:
            bound = home.of_module(name)
            return self._of_bound(bound) if bound is not None else None
        finally:
            self.module = here

    def _of_name(self, node: ast.Name) -> ast.AST:
        found = self.module.lookup(node)
        if found is None or node.id in self.kept:
            return copy.copy(node)
        scope, bound = found
        # A local name of a function that is copied as a whole stays.
        for inner in self._inside:
            if scope is inner or inner in self.module.ancestors(scope):
                return copy.copy(node)
        return self._of_bound(bound) or copy.copy(node)

    def _of_bound(self, bound: Bound) -> ast.AST | None:
        """A copy of what a name is bound to; None if that is not known.

        For a function or class it is the name of a definition.
        """
        if isinstance(bound, Imported):
            if _root(bound.module) in FOLLOWED and not bound.level:
                return ast.parse(_joined(bound.module, bound.name), mode="eval").body
            home = self.module.imported(bound.module, bound.level)
            return self._elsewhere(home, bound.name) if home is not None else None
        if isinstance(bound, Definition):
            return ast.Name(self._defined(bound), ast.Load())
        if bound is None or bound in self._inside:
            return None
        self._inside.append(bound)
        value: ast.expr = self._copied(bound)
        self._inside.pop()
        if calls_out(value):
            return None
        self.reached.append(bound)
        return value

    def _defined(self, node: Definition) -> str:
        """The name under which a function or class is among the definitions.

        Of two that have the same name, the second one gets a new name.
        """
        for name, known in self._named.items():
            if known is node:
                return name
        name = node.name if node.name not in self._named else f"{node.name}_{len(self._named)}"
        self._named[name] = node
        self.reached.append(node)
        self._inside.append(node)
        found = self._copied(node)
        self._inside.pop()
        assert isinstance(found, Definition)
        found.name = name
        self.definitions[name] = ast.unparse(ast.fix_missing_locations(_without_docstring(found)))
        return name


def _without_docstring(node: Definition) -> Definition:
    if ast.get_docstring(node) is not None:
        node.body = node.body[1:] or [ast.Pass()]
    return node
