"""What may come out of functions of which nothing is known: anything that went in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

from codemods.flow.calls import Calls, CallSite
from codemods.flow.objects import Container, Derived, External, Function, Method, Place, Thing

DEEPEST_NESTING = 3
"""How deep in the arguments of an unknown function a thing is looked for."""


@dataclass
class Derivation:
    """Lets what unknown functions return, and hand to functions, be derived from their arguments.

    That nothing is known of a function shows only once all else has been solved, so this works in rounds. Each looks at the
    calls that the last solution touched.
    """

    flow: Calls
    _sites: dict[Place, list[tuple[Place, CallSite]]] = field(default_factory=lambda: defaultdict(list))
    _holders: dict[Container, dict[Place, None]] = field(default_factory=lambda: defaultdict(dict))
    _held: dict[tuple[Container, int], dict[Thing, None]] = field(default_factory=dict)

    def add(self, callee: Place, site: CallSite) -> None:
        """Take a call into account."""
        for place in (callee, *_arguments(site)):
            self._sites[place].append((callee, site))

    def round(self) -> bool:
        """Derive what follows from the present solution. Whether any of that was new."""
        touched = self.flow.solver.take_touched()
        self._held.clear()
        for place in touched:
            if place in self._sites or _is_inside(place):
                for item in self.flow.solver.at(place):
                    if isinstance(item, Container):
                        self._holders[item][place] = None
        sites = {
            id(site): (callee, site)
            for place in self._with_holders(touched)
            for callee, site in self._sites.get(place, ())
        }
        new = False
        for callee, site in sites.values():
            if self.is_unknown(callee):
                new = self._derive(site) or new
        return new

    def _with_holders(self, places: Iterable[Place]) -> Iterator[Place]:
        """Places, and those that hold a container in which one of them is, however deep."""
        seen = dict.fromkeys(places)
        pending = list(seen)
        while pending:
            place = pending.pop(0)
            yield place
            for holder in self._holders.get(place[1], ()) if _is_inside(place) else ():
                if holder not in seen:
                    seen[holder] = None
                    pending.append(holder)

    def is_unknown(self, callee: Place) -> bool:
        """Whether nothing is known of some function that is called."""
        found = self.flow.solver.at(callee)
        return not found or any(
            isinstance(item, External) and self.flow.library.function(item.name) is None for item in found
        )

    def _derive(self, site: CallSite) -> bool:
        arguments = _arguments(site)
        sources = dict.fromkeys(source for place in arguments for source in self._sources(place))
        if not sources:
            return False
        places = [site.result, *self._parameters(arguments)]
        new = False
        for source in sources:
            for place in places:
                new = self.flow.solver.add(place, Derived(source)) or new
        return new

    def _sources(self, place: Place) -> Iterator[Thing]:
        for item in self.flow.solver.at(place):
            if isinstance(item, Thing):
                yield item
            elif isinstance(item, Derived):
                yield item.source
            elif isinstance(item, Container):
                yield from self._within(item, DEEPEST_NESTING)

    def _within(self, container: Container, depth: int) -> dict[Thing, None]:
        """The things in a container, and in the containers in it."""
        if (container, depth) not in self._held:
            items = self.flow.solver.at(("elements", container))
            found = {item: None for item in items if isinstance(item, Thing)}
            if depth > 1:
                for item in items:
                    if isinstance(item, Container):
                        found |= self._within(item, depth - 1)
            self._held[container, depth] = found
        return self._held[container, depth]

    def _parameters(self, arguments: Iterable[Place]) -> Iterator[Place]:
        """The parameters of the functions among some arguments."""
        for place in arguments:
            for item in self.flow.solver.at(place):
                function = item.function if isinstance(item, Method) else item
                if isinstance(function, Function):
                    for name in (*function.node.args.posonlyargs, *function.node.args.args):
                        yield ("variable", function.scope, name.arg)


def _arguments(site: CallSite) -> tuple[Place, ...]:
    return (*site.positional, *site.keywords.values(), *site.unpacked)


def _is_inside(place: Place) -> TypeGuard[tuple[str, Container]]:
    return isinstance(place, tuple) and place[0] == "elements"
