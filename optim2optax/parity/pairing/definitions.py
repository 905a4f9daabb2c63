"""The names of files, by scope, and the files that imports mean.

No code of a file is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from codemods.sources.notebook import python_of
from optim2optax.parity.pairing.bindings import Bound, Definition, bound_by, changed_by

Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Scope: TypeAlias = ast.Module | Definition | ast.Lambda | Comprehension


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
            content = self.contents.get(path)
            if content is None:
                content = path.read_bytes()
        except OSError:
            return ""
        if path.suffix == ".ipynb":
            return python_of(content)
        return content.decode("utf-8-sig", "replace")

    def module(self, name: str, level: int, path: Path) -> Definitions | None:
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


class Definitions:
    """The names of one file, by scope."""

    def __init__(
        self, source: str, path: Path | None = None, project: Tree | None = None
    ) -> None:
        self.tree = ast.parse(source)
        self._path, self._project = path, project
        self._parents = _parents_within(self.tree)

    def place(self, text: str, line: int) -> ast.expr:
        """An expression that is as if it stood at a line of the file."""
        node = ast.parse(f"({text})", mode="eval").body
        self._parents |= _parents_within(node)
        self._parents[node] = self.scope_at(line)
        return node

    def scope_at(self, line: int) -> ast.AST:
        """The innermost function or class that a line belongs to, else the module."""
        innermost: Definition | None = None
        for node in ast.walk(self.tree):
            if not isinstance(node, Definition):
                continue
            is_around = node.lineno <= line <= (node.end_lineno or line)
            if is_around and (innermost is None or node.lineno > innermost.lineno):
                innermost = node
        return innermost or self.tree

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
        for scope in self.ancestors(node):
            is_class = isinstance(scope, ast.ClassDef)
            if isinstance(scope, Scope) and not _is_ahead(below, scope):
                # A method does not see the names of its class.
                if not (is_class and is_in_function):
                    yield scope
                is_in_function = is_in_function or not is_class
            below = scope

    def imported(self, module: str, level: int) -> Definitions | None:
        """The file of the project that an import means."""
        if self._project is None or self._path is None:
            return None
        return self._project.module(module, level, self._path)

    def of_module(self, name: str) -> Bound:
        """The value or definition that a name of the module itself is bound to."""
        return _only(self._bindings.get(self.tree, {}).get(name, []))

    @cached_property
    def _bindings(self) -> dict[ast.AST, dict[str, list[Bound]]]:
        """The bindings of each name, by the scope that it is in."""
        found: dict[ast.AST, dict[str, list[Bound]]] = {}
        for node in ast.walk(self.tree):
            for name, bound in bound_by(node):
                of_scope = found.setdefault(self._scope_of(node), {})
                of_scope.setdefault(name, []).append(bound)
        for node in ast.walk(self.tree):
            for name in changed_by(node):
                # Which of the scopes around has this name does not matter: none is known then.
                for scope in self.ancestors(node):
                    if name in found.get(scope, {}):
                        found[scope][name].append(None)
        return found

    def _scope_of(self, node: ast.AST) -> ast.AST:
        """The scope of the names that a node binds; comprehensions and lambdas are scopes."""
        scopes = (scope for scope in self.ancestors(node) if isinstance(scope, Scope))
        return next(scopes, self.tree)


def _only(bound: Sequence[Bound]) -> Bound:
    """The one binding of a name; a name that is bound twice may have either value."""
    return bound[0] if len(bound) == 1 else None


def _parents_within(root: ast.AST) -> dict[ast.AST, ast.AST]:
    """The parent of each node below a root."""
    parents: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(root):
        for child in ast.iter_child_nodes(node):
            parents[child] = node
    return parents


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
