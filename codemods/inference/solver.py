"""A local solver: the value of a place is found when somebody asks for it.

Each place has an equation, which asks for the values of others. Only places that an answer needs
are ever evaluated; those that need each other are evaluated again until nothing grows (a top-down
solver: Le Charlier and Van Hentenryck 1992; with contributions to other places as in Apinis, Seidl
and Vojdani 2012). What one place copies from another is no part of its equation: only what is new
there is handed on (difference propagation: Fecht and Seidl 1998).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TypeAlias

from codemods.inference.objects import Object, Place, plain

Equation: TypeAlias = "Generator[Place, tuple[Object, ...], Iterable[Object]]"
"""Asks for places by yielding them, gets what is known to be there, and returns its own value."""


CROWDED = 24
"""With so many objects at a place, further ones lose the calls in whose course they came about."""


FEW = 4
"""So many things are looked through faster than looked up, and take less memory."""

Links: TypeAlias = "dict[Place, tuple[Place, ...] | dict[Place, None]]"

WHOLE = "whole"


def whole(place: Place) -> Place:
    """A request of an equation: let its place have all that is at another, now and later.

    The answer to it is empty: the equation does not get to see what is there.
    """
    return (WHOLE, place)


class Solver:
    """Values of places, each the union of what its equation gives and of what is added to it.

    Equations are monotone: with more at the places that they ask for, they return no less. All is
    kept in the order of arrival, so that a run depends on its input alone.
    """

    def __init__(
        self,
        equation: Callable[[Place], Equation | None],
        same: Callable[[Place], Place | None],
    ) -> None:
        """Make a solver.

        Args:
          equation: that of a place; one that has none has only what is added to it.
          same: another place that a place is only a name for, if it is.
        """
        self._equation = equation
        self._same = same
        self._names: dict[Place, Place] = {}
        """The places that are names for others, and for which."""
        self._known: dict[Place, tuple[Object, ...]] = {}
        self._members: dict[Place, set[Object]] = {}
        """The same as a set, where it has more than a few."""
        self._readers: Links = {}
        """The places whose equations have asked for each place."""
        self._copies: Links = {}
        """The places that have all that is at each place."""
        self._begun: set[Place] = set()
        self._outdated: dict[Place, None] = {}
        self.evaluations = 0
        self.version = 0
        """Grows with everything that becomes known."""

    def at(self, place: Place) -> tuple[Object, ...]:
        """What may be at a place, found out now if it was not before."""
        place = self._named(place)
        if place not in self._begun:
            self._evaluate(place)
        self._settle()
        return self.known(place)

    def known(self, place: Place) -> tuple[Object, ...]:
        """What is known to be at a place, without asking any further."""
        return self._known.get(self._names.get(place, place), ())

    def everything(self) -> dict[Object, None]:
        """What is known to be anywhere."""
        return {item: None for known in self._known.values() for item in known}

    def add(self, place: Place, *items: Object) -> bool:
        """Let objects be at a place, whatever its equation says. Returns whether any is new."""
        if place in self._names:
            self._part(place)
        new = self._added(place, items)
        pending = [(copy, new) for copy in self._copies.get(place, ())] if new else []
        while pending:
            place, given = pending.pop()
            further = self._added(place, given)
            if further:
                pending += ((copy, further) for copy in self._copies.get(place, ()))
        return bool(new)

    def _added(self, place: Place, items: Iterable[Object]) -> list[Object]:
        """Let objects be at a place, and return those that are new there."""
        known = self._known.get(place, ())
        members = known if len(known) <= FEW else self._members[place]
        new = [item for item in items if item not in members]
        is_crowded = len(known) + len(new) > CROWDED
        if is_crowded and place[0] != "instances":  # type: ignore[index]
            new = [item for item in map(plain, new) if item not in members]  # type: ignore[misc]
        if not new:
            return new
        if len(new) > 1:
            new = [*dict.fromkeys(new)]
        known = self._known[place] = (*known, *new)
        if len(known) > FEW:
            self._members.setdefault(place, set(known)).update(new)
        self.version += 1
        self._outdated.update(dict.fromkeys(self._readers.get(place, ())))
        return new

    def _named(self, place: Place) -> Place:
        """The place for which a place is a name; else itself."""
        named = self._names.get(place)
        if named is None:
            named = self._same(place)
            if named is None:
                return place
            named = self._names[place] = self._named(named)
        return named

    def _part(self, name: Place) -> None:
        """Let a place be one of its own: something is added to it alone."""
        place = self._names.pop(name)
        self._begun.add(name)
        for links in (self._readers, self._copies):
            for other in links.get(place, ()):
                _link(links, name, other)
        self._copy(place, name)

    def _settle(self) -> None:
        while self._outdated:
            pending = deque(self._outdated)
            self._outdated.clear()
            while pending:
                self._evaluate(pending.popleft())

    def _evaluate(self, start: Place) -> None:
        """Evaluate a place, and those that it asks for and that nobody has asked for before."""
        running: list[tuple[Place, Equation]] = []
        self._begin(start, running)
        copied: set[Place] = set()
        """The places that are evaluated because they are copied."""
        given: tuple[Object, ...] | None = None
        while running:
            place, equation = running[-1]
            try:
                wanted = equation.send(given)  # type: ignore[arg-type]
            except StopIteration as end:
                running.pop()
                if end.value:
                    self.add(place, *end.value)
                if place in copied:
                    copied.remove(place)
                    given = ()
                elif running:
                    given = self._read(place, running[-1][0])
                continue
            is_copied = wanted[0] == WHOLE  # type: ignore[index]
            wanted = wanted[1] if is_copied else wanted  # type: ignore[index]
            if wanted not in self._begun:
                wanted = self._named(wanted)
            if is_copied:
                self._copy(wanted, place)
            if wanted in self._begun or not self._begin(wanted, running):
                given = () if is_copied else self._read(wanted, place)
            else:
                given = None
                if is_copied:
                    copied.add(wanted)

    def _begin(self, place: Place, running: list[tuple[Place, Equation]]) -> bool:
        """Start the equation of a place; whether there is one."""
        self._begun.add(place)
        self._outdated.pop(place, None)
        equation = self._equation(place)
        if equation is None:
            return False
        self.evaluations += 1
        running.append((place, equation))
        return True

    def _read(self, place: Place, reader: Place) -> tuple[Object, ...]:
        _link(self._readers, place, reader)
        return self.known(place)

    def _copy(self, source: Place, place: Place) -> None:
        """Let a place have all that is at another, now and later."""
        if place != source and _link(self._copies, source, place):
            self.add(place, *self.known(source))


def _link(links: Links, place: Place, other: Place) -> bool:
    """Link a place with another; whether that is new."""
    linked = links.get(place)
    if linked is None:
        links[place] = (other,)
        return True
    if other in linked:
        return False
    if isinstance(linked, dict):
        linked[other] = None
    elif len(linked) < FEW:
        links[place] = (*linked, other)
    else:
        links[place] = dict.fromkeys((*linked, other))
    return True
