"""The files of a project, and what their names are bound to. No code of a file is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from codemods.sources.bindings import ScopeNode
from codemods.sources.modules import Unit
from codemods.sources.notebook import python_of

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Imported:
    """A module that is imported, or a name in it. `level` is the number of dots in front."""

    module: str
    name: str = ""
    level: int = 0


Bound: TypeAlias = ast.expr | Definition | Imported | None
"""What a name is bound to: an expression, a definition or an import; None if that is not known."""

MUTATING = frozenset(
    [
        "add",
        "append",
        "clear",
        "extend",
        "insert",
        "pop",
        "remove",
        "setdefault",
        "sort",
        "update",
    ]
)


@dataclass
class Tree:
    """The files of a project, some with other contents than on the disk.

    Notebooks are the code of their cells.
    """

    root: Path
    contents: Mapping[Path, bytes] = field(default_factory=dict)
    _known: dict[Path, File | None] = field(default_factory=dict)

    def file(self, path: Path) -> File | None:
        """The names of a file; None if there is none, or if it cannot be read as Python."""
        if path not in self._known:
            try:
                self._known[path] = File(self.text(path), path, self)
            except (SyntaxError, ValueError):
                self._known[path] = None
        return self._known[path]

    def text(self, path: Path) -> str:
        """The code of a file; empty if there is none, or if it cannot be read."""
        try:
            content = self.contents.get(path)
            if content is None:
                content = path.read_bytes()
        except OSError:
            return ""
        if path.suffix == ".ipynb":
            return python_of(content)
        return content.decode("utf-8-sig", "replace")

    def module(self, name: str, level: int, path: Path) -> File | None:
        """The module that an import in the file at `path` means, if it is one of the project."""
        folders = [
            folder for folder in path.parents if folder.is_relative_to(self.root)
        ]
        # `from ..models import x` means one folder, `from models import x` may mean any around.
        if level:
            folders = folders[level - 1 : level]
        parts = name.split(".") if name else []
        for folder in folders:
            place = folder.joinpath(*parts)
            for found in (place.with_suffix(".py"), place / "__init__.py"):
                if found in self.contents or found.is_file():
                    return self.file(found)
        return None


class File:
    """The names of one file, by scope."""

    def __init__(self, code: str, path: Path, project: Tree) -> None:
        self.unit = Unit(str(path), code, ast.parse(code))
        self._path, self._project = path, project

    def place(self, text: str, line: int) -> ast.expr:
        """An expression that is as if it stood at a line of the file."""
        alone = Unit("", text, ast.parse(f"({text})"))
        (statement,) = alone.tree.body
        assert isinstance(statement, ast.Expr)
        self.unit.parents.update(alone.parents)
        self.unit.parents[statement.value] = self.scope_at(line)
        return statement.value

    def scope_at(self, line: int) -> ast.AST:
        """The innermost function or class that a line belongs to, else the module."""
        innermost: Definition | None = None
        for node in self.unit.nodes:
            if not isinstance(node, Definition):
                continue
            is_around = node.lineno <= line <= (node.end_lineno or line)
            if is_around and (innermost is None or node.lineno > innermost.lineno):
                innermost = node
        return innermost or self.unit.tree

    def path(self, node: ast.AST) -> str:
        """The names of the functions and classes around a node, with dots between."""
        around = (node, *self.unit.ancestors(node))
        names = [scope.name for scope in around if isinstance(scope, Definition)]
        return ".".join(reversed(names))

    def lookup(self, name: ast.Name) -> tuple[ast.AST, Bound] | None:
        """The scope in which a name is bound, and to what; None if the file has no such name."""
        for scope in self._scopes_around(name):
            bound = self._bindings.get(scope, {}).get(name.id)
            if bound is not None:
                return scope, _only(bound)
        return None

    def _scopes_around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The scopes whose names a node sees, from the inside out."""
        below = node
        is_in_function = False
        for scope in self.unit.ancestors(node):
            is_class = isinstance(scope, ast.ClassDef)
            if isinstance(scope, ScopeNode) and not _is_ahead(below, scope):
                # A method does not see the names of its class.
                if not (is_class and is_in_function):
                    yield scope
                is_in_function = is_in_function or not is_class
            below = scope

    def imported(self, module: str, level: int) -> File | None:
        """The file of the project that an import means."""
        return self._project.module(module, level, self._path)

    def of_module(self, name: str) -> Bound:
        """The value or definition that a name of the module itself is bound to."""
        return _only(self._bindings.get(self.unit.tree, {}).get(name, []))

    @cached_property
    def _bindings(self) -> dict[ast.AST, dict[str, list[Bound]]]:
        """The bindings of each name, by the scope that it is in."""
        found: dict[ast.AST, dict[str, list[Bound]]] = {}
        for scope, bindings in self.unit.bindings.items():
            of_scope = found.setdefault(scope, {})
            for name, declared, node in bindings:
                value = None if declared else self._value(node)
                of_scope.setdefault(name, []).append(value)
        for node in self.unit.nodes:
            for name in _changed_by(node):
                # Which of the scopes around has this name does not matter: none is known then.
                for scope in self.unit.ancestors(node):
                    if name in found.get(scope, {}):
                        found[scope][name].append(None)
        return found

    def _value(self, node: ast.AST) -> Bound:
        """What a node binds its name to."""
        match node, self.unit.parents.get(node):
            case ast.alias(name=name), ast.ImportFrom(module=module, level=level):
                return Imported(module or "", name, level)
            # `import jax.numpy` binds `jax`.
            case ast.alias(name=name, asname=other), _:
                return Imported(name if other else top_level(name))
            case ((ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()), _):
                return node
            # optimizer_def = optim.Adam(1e-3)
            case (
                ast.Name(),
                ast.Assign(targets=[ast.Name()], value=value)
                | ast.NamedExpr(value=value)
                | ast.AnnAssign(value=ast.expr() as value),
            ):
                return value
            # rate, decay = 1e-3, 0.9
            case ast.Name(), ast.Tuple(elts=targets) as whole:
                match self.unit.parents[whole]:
                    case ast.Assign(targets=[target], value=ast.Tuple(elts=values)):
                        if target is whole and len(targets) == len(values):
                            return values[targets.index(node)]
        return None


def _changed_by(node: ast.AST) -> Iterator[str]:
    """The names of what a statement changes in place, and of what a function binds elsewhere."""
    match node:
        # settings.update(rate=1e-3)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute))
        ):
            if attribute in MUTATING:
                yield name
        # settings["rate"] = 1e-3; del settings.rate
        case (
            ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
            | ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
        ):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def top_level(module: str) -> str:
    return module.partition(".")[0]


def _only(bound: Sequence[Bound]) -> Bound:
    """The one binding of a name; a name that is bound twice may have either value."""
    return bound[0] if len(bound) == 1 else None


def _is_ahead(node: ast.AST, scope: ast.AST) -> bool:
    """Whether a part of a scope is evaluated outside of it, such as defaults and decorators."""
    match scope:
        # @partial(jax.jit, static_argnums=0)
        # def step(state, rate=RATE): ...
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return node is scope.args or node in scope.decorator_list
        case ast.Lambda():
            return node is scope.args
        case ast.ClassDef():
            return node in (*scope.decorator_list, *scope.bases, *scope.keywords)
    return False
