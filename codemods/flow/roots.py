"""Where a value comes from of which nothing is known: the calls, parameters and names at the beginning of its ways."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from codemods.flow.objects import Class, External, Instance, Place, Result

if TYPE_CHECKING:
    from codemods.flow.calls import Calls


class Roots:
    """Goes backwards along the edges of the solution. What it finds is kept until there is something new."""

    def __init__(self, flow: Calls) -> None:
        self.flow = flow
        self._version = -1
        self._roots: dict[Place, dict[Place, None]] = {}
        self._known: dict[ast.expr, set[str]] = {}

    def of(self, place: Place) -> Mapping[Place, None]:
        """The places from which everything at a place has come, and to which nothing comes from elsewhere."""
        self._forget()
        if place not in self._roots:
            self._roots[place] = self._followed(place)
        return self._roots[place]

    def _followed(self, place: Place) -> dict[Place, None]:
        incoming = self.flow.solver.incoming()
        found: dict[Place, None] = {}
        seen: dict[Place, None] = {place: None}
        pending = [place]
        while pending:
            current = pending.pop()
            sources = [*incoming.get(current, ()), *self.flow.returned.get(current, ())]
            if not sources:
                found[current] = None
            for source in sources:
                if source not in seen:
                    seen[source] = None
                    pending.append(source)
        return found

    def _forget(self) -> None:
        if self._version != self.flow.solver.version:
            self._version = self.flow.solver.version
            self._roots, self._known = {}, {}

    def names(self, node: ast.expr) -> AbstractSet[str]:
        """The full names that an expression may stand for, as far as imports tell: `queue.Queue().put`. Empty: unknown."""
        self._forget()
        if node not in self._known:
            self._known[node] = {""}  # of what comes from itself alone, nothing is known
            self._known[node] = self._told(node)
        return self._known[node]

    def _told(self, node: ast.expr) -> set[str]:
        place = self.flow.places.get(node)
        if place is None:
            return {""}
        told = {name for item in self.flow.solver.at(place) for name in self._names_of(item)}
        if told:
            return told
        match node:
            case ast.Attribute(value=value, attr=attribute):
                return {f"{name}.{attribute}" if name else "" for name in self.names(value)}
            case ast.Call(func=function):
                return {f"{name}()" if name else "" for name in self.names(function)}
            case ast.Subscript(value=value):
                return {*self.names(value)}
            case ast.Constant(value=value):
                return {f"builtins.{type(value).__name__}"}
            case ast.JoinedStr():
                return {"builtins.str"}
        found: set[str] = set()
        for root in self.of(place):
            further = isinstance(root, ast.Attribute | ast.Call | ast.Subscript)
            found |= self.names(root) if further and isinstance(root, ast.expr) else {""}
        return found

    def _names_of(self, item: object) -> Iterator[str]:
        match item:
            case External(name=name):
                yield name
            case Result(name=name):
                yield f"{name}()"
            case Class():
                yield from (base.name for base in self.flow.ancestry(item) if isinstance(base, External))
            case Instance(cls=cls):
                yield from (f"{base.name}()" for base in self.flow.ancestry(cls) if isinstance(base, External))
