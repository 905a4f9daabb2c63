"""The binding behind a name, by Python's rules."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from codemods.sources.bindings import Comprehension, ScopeNode
from codemods.sources.modules import Unit

SCOPES = (
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


@dataclass(eq=False)
class Scope:
    """A module, class, function, lambda or comprehension and the names it binds."""

    unit: Unit
    node: ScopeNode
    parent: Scope | None
    names: set[str] = field(default_factory=set)
    elsewhere: dict[str, str] = field(default_factory=dict)

    @property
    def module(self) -> Scope:
        return self if self.parent is None else self.parent.module

    @property
    def function(self) -> Scope:
        """The function, class or module that a comprehension or lambda is in; else the scope."""
        inner = isinstance(self.node, ast.Lambda | Comprehension)
        return self.parent.function if inner and self.parent is not None else self

    def binding(self, name: str) -> Scope | None:
        """The scope in which `name`, used here, is bound.

        None for a builtin or a name from a star import.
        """
        if self.elsewhere.get(name) == "global":
            return self.module
        if name in self.names and name not in self.elsewhere:
            return self
        scope = self.parent
        while scope is not None:
            # Functions do not see the names of a class around them.
            if (
                not isinstance(scope.node, ast.ClassDef)
                and name in scope.names
                and name not in scope.elsewhere
            ):
                return scope
            if scope.elsewhere.get(name) == "global":
                return scope.module
            scope = scope.parent
        return None


def open_scope(unit: Unit, node: ScopeNode, parent: Scope | None) -> Scope:
    """A scope with its names filled in."""
    scope = Scope(unit, node, parent)
    for name, declared, _ in unit.bindings.get(node, ()):
        if declared:
            scope.elsewhere[name] = declared
            if declared == "global":
                scope.module.names.add(name)
        else:
            scope.names.add(name)
    return scope


class Scopes:
    """The scopes of one file, each opened when it is asked for."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.outermost = open_scope(unit, unit.tree, None)
        self._opened: dict[ScopeNode, Scope] = {unit.tree: self.outermost}

    def around(self, node: ast.AST) -> Scope:
        """The scope in which a node stands."""
        owner = next(
            outer for outer in self.unit.ancestors(node) if isinstance(outer, ScopeNode)
        )
        if owner not in self._opened:
            self._opened[owner] = open_scope(self.unit, owner, self.around(owner))
        return self._opened[owner]


def first_bound(unit: Unit, cls: ast.ClassDef) -> dict[str, tuple[int, int]]:
    """Where the statement ends, by line and column, in which a class first binds each name."""
    found: dict[str, tuple[int, int]] = {}
    for name, _, node in unit.bindings.get(cls, ()):
        statement = node
        while unit.parents[statement] is not cls:
            statement = unit.parents[statement]
        assert isinstance(statement, ast.stmt)
        end = (statement.end_lineno or 0, statement.end_col_offset or 0)
        found[name] = min(end, found.get(name, end))
    return found
