"""The way of an optimizer through a project, from its allocation site to where it has to stay."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.inference.objects import Class, Function, LegacyObject, Place
from codemods.inference.scopes import Scope
from codemods.messages import joined, message
from codemods.model import Location, Prose
from codemods.sources.modules import Unit

CallsByPlace = dict[Place, list[tuple[Unit, ast.Call]]]
MOST_STOPS = 3
"""How many places are named between the first and the last."""


@dataclass(frozen=True)
class Way:
    """Where an object was created, and the calls by which it gets from there to a use."""

    origin: Location
    stops: tuple[Location, ...]

    @property
    def through(self) -> Prose:
        """The stops, as the end of a sentence; empty if there are none."""
        shown: tuple[Location | str, ...] = self.stops
        if len(shown) > MOST_STOPS:
            shown = (*shown[: MOST_STOPS - 1], "…", shown[-1])
        return message(" through {}", joined(", ", shown)) if shown else ""


class Traces:
    """Finds such ways, backwards along the edges of the points-to analysis."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.flow = facts.flow
        self._known: dict[Use, Way | None] = {}

    def way(self, use: Use) -> Way | None:
        """How the optimizer or definition of a use got there.

        None if it was created there, or it is not known where.
        """
        if use not in self._known:
            self._known[use] = self._find(use)
        return self._known[use]

    def _find(self, use: Use) -> Way | None:
        # of `state.optimizer.target`, that is `state.optimizer`
        node: ast.AST | None = use.node
        while isinstance(node, ast.expr):
            found = self.facts.legacy_objects(node, "optimizer", "definition")
            if found and node is not use.node:
                return self._between(found[0], node, use.location)
            # state.optimizer.apply_gradient(grads): its function, then `state.optimizer`
            node = getattr(node, "value", None) or getattr(node, "func", None)
        return None

    def _between(self, obj: LegacyObject, node: ast.expr, here: Location) -> Way | None:
        """The way of an object to an expression that holds it."""
        if obj.evidence != "proven" or not isinstance(obj.node, ast.Call):
            return None
        origin = obj.unit.location(obj.node.lineno)
        if here == origin:
            return None
        stops = (one for one in self._stops(obj, node) if one not in (here, origin))
        return Way(origin, tuple(stops))

    def _stops(self, obj: LegacyObject, node: ast.expr) -> Iterable[Location]:
        """The calls on the shortest way by which an optimizer gets from one function to another."""
        located = [
            (scope.function, place)
            for place in self._shortest(obj, self.flow.places[node])
            if (scope := self._scope(place)) is not None
        ]
        stops: dict[Location, None] = {}
        for (scope, place), (into, following) in itertools.pairwise(located):
            stop = self._crossing(place, following, into) if scope is not into else None
            if stop is not None:
                stops[stop] = None
        return stops

    def _crossing(self, source: Place, target: Place, into: Scope) -> Location | None:
        """The call by which an object gets from `source` to `target`: as argument or result."""
        # optimizer = create_optimizer()
        if isinstance(target, ast.Call):
            return into.unit.location(target.lineno)
        # train(optimizer)
        for unit, call in self._calls_with.get(source, ()):
            for item in self.facts.objects(call.func):
                is_entered = isinstance(item, Function) and item.scope is into
                # Trainer(optimizer)
                if is_entered or isinstance(item, Class):
                    return unit.location(call.lineno)
        return None

    @cached_property
    def _calls_with(self) -> CallsByPlace:
        """The calls by the places of their arguments."""
        found: CallsByPlace = defaultdict(list)
        for unit, call in self.flow.reading.calls:
            for argument in values_of(call):
                place = self.flow.places.get(argument)
                found[place].append((unit, call))
        return found

    def _shortest(self, obj: LegacyObject, end: Place) -> list[Place]:
        """The places of an object on the shortest way from its allocation site to `end`."""
        towards: dict[Place, Place | None] = {end: None}
        pending = deque([end])
        while pending:
            place = pending.popleft()
            if place is obj.node:
                # Found: now along the way by which the search has come.
                way: list[Place] = []
                while place is not None:
                    way.append(place)
                    place = towards[place]
                return way
            sources = self.flow.sources.of(place)
            match place:
                # optimizer.replace(target=params) gives the optimizer
                case ast.Call(func=ast.Attribute(value=owner)):
                    sources = [*sources, self.flow.places.get(owner)]
            for source in sources:
                if source not in towards and obj in self.flow.solver.at(source):
                    towards[source] = place
                    pending.append(source)
        return []

    def _scope(self, place: Place) -> Scope | None:
        match place:
            case ast.expr():
                return self.flow.reading.scopes.get(place)
            case (_, Scope() as scope, *_):
                return scope
        return None
