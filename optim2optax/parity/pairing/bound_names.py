"""The files of a project, and what their names are bound to. No code of a file is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from codemods.inference.binding import Bound, bind, signature_of
from codemods.inference.reading import Binding, Index, Reader
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit
from codemods.sources.notebook import python_of
from codemods.vocabulary import words

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Imported:
    """A module that is imported, or a name in it. `level` is the number of dots in front."""

    module: str
    name: str = ""
    level: int = 0


BoundTo: TypeAlias = ast.expr | Definition | Imported | None
"""What a name is bound to: an expression, a definition or an import; None if that is not known."""

MUTATING = words("add append clear extend insert pop remove setdefault sort update")


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
        self._index = Index()
        self._scopes: dict[ast.AST, Scope] = {}
        reader = Reader(self.unit, self._scopes, self._index)
        self._module = reader.contents.scope
        changed = (_changed_by(node) for node in self.unit.nodes)
        self._changed = {
            (self._scopes[name].binding(name.id), name.id)
            for name in changed
            if name is not None
        }

    def place(self, text: str, line: int) -> ast.expr:
        """An expression that is as if it stood at a line of the file."""
        found = ast.parse(f"({text})", mode="eval").body
        around = self.scope_at(line)
        index = self._index
        owner = index.functions.get(around) or index.classes.get(around)
        scope = self._module if owner is None else owner.scope
        self._scopes.update((inner, scope) for inner in ast.walk(found))
        return found

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

    def lookup(self, name: ast.Name) -> tuple[ast.AST, BoundTo] | None:
        """The scope in which a name is bound, and to what; None if the file has no such name."""
        scope = self._scopes[name].binding(name.id)
        return None if scope is None else (scope.node, self._bound(scope, name.id))

    def given(self, function: ast.AST, name: str) -> ast.expr | None:
        """What all calls in the file give a parameter of a function, if that is the same text."""
        if not isinstance(function, ast.FunctionDef):
            return None
        uses = [
            node
            for node in self.unit.nodes
            if isinstance(node, ast.Name) and node.id == function.name
            if self.lookup(node) == (self._module.node, function)
        ]
        signature = signature_of(function.args)
        found: dict[str, ast.expr] = {}
        for use in uses:
            call = self.unit.call_of(use)
            # train(create_optimizer): it is called elsewhere
            bound = None if call is None else bind(signature, call)
            if not isinstance(bound, Bound) or bound.unpacked:
                return None
            value = bound.complete.get(name)
            if value is None:
                return None
            found[ast.unparse(value)] = value
        return next(iter(found.values())) if len(found) == 1 else None

    def imported(self, module: str, level: int) -> File | None:
        """The file of the project that an import means."""
        return self._project.module(module, level, self._path)

    def of_module(self, name: str) -> BoundTo:
        """The value or definition that a name of the module itself is bound to."""
        return self._bound(self._module, name)

    def _bound(self, scope: Scope, name: str) -> BoundTo:
        """What a name is bound to; a name that is bound twice may have either value."""
        bindings = self._index.bindings.get((scope, name), [])
        if len(bindings) != 1 or (scope, name) in self._changed:
            return None
        match bindings[0]:
            case Binding(
                node=ast.ImportFrom(module=module, level=level),
                alias=ast.alias() as alias,
            ):
                return Imported(module or "", alias.name, level)
            # `import jax.numpy` binds `jax`.
            case Binding(alias=ast.alias() as alias):
                return Imported(alias.name if alias.asname else top_level(alias.name))
            case Binding(
                node=(
                    ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()
                ) as node
            ):
                return node
            # optimizer_def = optim.Adam(1e-3)
            case Binding(source=ast.expr() as value, steps=()):
                return value
            # rate, decay = 1e-3, 0.9
            case Binding(source=ast.Tuple(elts=values), steps=[("item", int(place))]):
                if not any(isinstance(value, ast.Starred) for value in values):
                    return values[place]
        return None


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
