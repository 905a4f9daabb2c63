"""Where a value comes from of which nothing is known: the calls, parameters and names at the beginning of its ways."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codemods.flow.objects import Class, External, Instance, Place, Result

if TYPE_CHECKING:
    from codemods.flow.calls import Calls


class Roots:
    """Goes backwards along the edges of the solution."""

    def __init__(self, flow: Calls) -> None:
        self.flow = flow

    def of(self, place: Place) -> dict[Place, None]:
        """The places from which everything at a place has come, and to which nothing comes from elsewhere."""
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

    def names(self, node: ast.expr) -> set[str]:
        """The full names that an expression may stand for, as far as imports tell: `queue.Queue().put`. Empty: unknown."""
        return self._names(node, frozenset())

    def _names(self, node: ast.expr, seen: frozenset[ast.expr]) -> set[str]:
        place = self.flow.places.get(node)
        if place is None or node in seen:
            return {""}
        told = {name for item in self.flow.solver.at(place) for name in self._names_of(item)}
        if told:
            return told
        seen |= {node}
        match node:
            case ast.Attribute(value=value, attr=attribute):
                return {f"{name}.{attribute}" if name else "" for name in self._names(value, seen)}
            case ast.Call(func=function):
                return {f"{name}()" if name else "" for name in self._names(function, seen)}
            case ast.Subscript(value=value):
                return self._names(value, seen)
            case ast.Constant(value=value):
                return {f"builtins.{type(value).__name__}"}
            case ast.JoinedStr():
                return {"builtins.str"}
        found: set[str] = set()
        for root in self.of(place):
            further = isinstance(root, ast.Attribute | ast.Call | ast.Subscript)
            found |= self._names(root, seen) if further and isinstance(root, ast.expr) else {""}
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
