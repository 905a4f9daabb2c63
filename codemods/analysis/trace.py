"""The way of an optimizer through a project, from where it was created to where it cannot be migrated."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.uses import Use
from codemods.flow.binding import values_of
from codemods.flow.objects import Class, Function, Place, Thing
from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit

MOST_STOPS = 3
"""How many places between the first and the last are named."""


@dataclass(frozen=True)
class Way:
    """Where something was created, and how it went on, as the end of a sentence or nothing."""

    origin: str
    through: str


class Traces:
    """Finds such ways, backwards along the edges of the flow analysis."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[Use, Way | None] = {}

    def way(self, use: Use) -> Way | None:
        """How the optimizer or definition of a use came there; None if it was made there, or nobody knows where."""
        if use not in self._known:
            self._known[use] = self._find(use)
        return self._known[use]

    def _find(self, use: Use) -> Way | None:
        thing, node = self._subject(use)
        if (
            thing is None
            or node is None
            or thing.evidence != "proven"
            or not isinstance(thing.node, ast.Call)
        ):
            return None
        here, origin = use.where, thing.unit.place(thing.node.lineno)
        stops = [stop for stop in self._stops(thing, node) if stop not in (here, origin)]
        if len(stops) > MOST_STOPS:
            stops = [*stops[: MOST_STOPS - 1], "…", stops[-1]]
        return (
            None if here == origin else Way(origin, f" through {', '.join(stops)}" if stops else "")
        )

    def _subject(self, use: Use) -> tuple[Thing | None, ast.expr | None]:
        """The optimizer or definition that a use is about, and the expression that holds it."""
        node: ast.AST | None = use.node
        while isinstance(node, ast.expr):
            thing = next(iter(self.facts.things(node, "optimizer", "definition")), None)
            if thing is not None and node is not use.node:
                return thing, node
            node = getattr(node, "value", None) or getattr(node, "func", None)
        return None, None

    def _stops(self, thing: Thing, node: ast.expr) -> list[str]:
        """The calls on the shortest way by which the optimizer goes from one function to another."""
        way = self._shortest(thing, self.facts.flow.places[node])
        located = [
            (scope.function, place) for place in way if (scope := self._scope(place)) is not None
        ]
        pairs = (pair for pair in itertools.pairwise(located) if pair[0][0] is not pair[1][0])
        stops = (
            self._crossing(place, following, scope) for (_, place), (scope, following) in pairs
        )
        return list(dict.fromkeys(filter(None, stops)))

    def _crossing(self, source: Place, target: Place, into: Scope) -> str:
        """The call by which something at `source` comes to `target`: as its result, or as an argument."""
        if isinstance(target, ast.Call):
            return into.unit.place(target.lineno)
        for unit, call in self._calls_with.get(source, ()):
            called = self.facts.objects(call.func)
            if any(
                isinstance(item, Class) or (isinstance(item, Function) and item.scope is into)
                for item in called
            ):
                return unit.place(call.lineno)
        return ""

    @cached_property
    def _calls_with(self) -> dict[Place, list[tuple[Unit, ast.Call]]]:
        """The calls by the places of their arguments."""
        found: dict[Place, list[tuple[Unit, ast.Call]]] = defaultdict(list)
        for unit, call in self.facts.flow.reading.calls:
            for argument in values_of(call):
                found[self.facts.flow.places.get(argument)].append((unit, call))
        return found

    def _shortest(self, thing: Thing, end: Place) -> list[Place]:
        """The places of an object from where it was made to `end`."""
        towards: dict[Place, Place | None] = {end: None}
        pending = deque([end])
        while pending:
            place = pending.popleft()
            if place is thing.node:
                way: list[Place] = []
                while place is not None:
                    way.append(place)
                    place = towards[place]
                return way
            for source in self._sources(place):
                if source not in towards and thing in self.facts.flow.solver.at(source):
                    towards[source] = place
                    pending.append(source)
        return []

    def _sources(self, place: Place) -> Iterable[Place]:
        """Where what is at a place may come from: along the edges, and into calls, what a function or a method returns."""
        yield from self.facts.incoming.get(place, ())
        if isinstance(place, ast.Call):
            yield from (
                ("return", item.node)
                for item in self.facts.objects(place.func)
                if isinstance(item, Function)
            )
            if isinstance(place.func, ast.Attribute):
                yield self.facts.flow.places.get(place.func.value)

    def _scope(self, place: Place) -> Scope | None:
        match place:
            case ast.expr():
                return self.facts.flow.reading.scopes.get(place)
            case (_, Scope() as scope, *_):
                return scope
        return None
