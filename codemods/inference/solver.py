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

WHOLE = "whole"


def whole(place: Place) -> Place:
    """A request of an equation: let its place have all that is at another, now and later.

    The answer to it is empty: the equation does not get to see what is there.
    """
    return (WHOLE, place)


class Cell:
    """What is known of a place, and who has asked for it."""

    __slots__ = ("copies", "is_begun", "known", "members", "place", "readers")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_begun = False
        self.known: tuple[Object, ...] = ()
        self.members: set[Object] | None = None
        """The same as a set, where it has more than a few."""
        self.readers: Links = ()
        """The cells whose equations have asked for this one."""
        self.copies: Links = ()
        """The cells that have all that is in this one."""


Links: TypeAlias = "tuple[Cell, ...] | dict[Cell, None]"


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
        self._cells: dict[Place, Cell] = {}
        """The cell of each place; of one that is a name for another, that of the other."""
        self._filled: list[Cell] = []
        self._outdated: dict[Cell, None] = {}
        self.evaluations = 0
        self.version = 0
        """Grows with everything that becomes known."""

    def at(self, place: Place) -> tuple[Object, ...]:
        """What may be at a place, found out now if it was not before."""
        cell = self._cell(place)
        if not cell.is_begun:
            self._evaluate(cell)
        self._settle()
        return self.known(place)

    def known(self, place: Place) -> tuple[Object, ...]:
        """What is known to be at a place, without asking any further."""
        cell = self._cells.get(place)
        return () if cell is None else cell.known

    def everything(self) -> dict[Object, None]:
        """What is known to be anywhere."""
        return {item: None for cell in self._filled for item in cell.known}

    def add(self, place: Place, *items: Object) -> bool:
        """Let objects be at a place, whatever its equation says. Returns whether any is new."""
        cell = self._cell(place)
        return self._add(cell if cell.place == place else self._part(place), items)

    def _add(self, cell: Cell, items: Iterable[Object]) -> bool:
        new = self._added(cell, items)
        pending = [(copy, new) for copy in cell.copies] if new else []
        while pending:
            cell, given = pending.pop()
            further = self._added(cell, given)
            if further:
                pending += ((copy, further) for copy in cell.copies)
        return bool(new)

    def _added(self, cell: Cell, items: Iterable[Object]) -> list[Object]:
        """Let objects be in a cell, and return those that are new there."""
        known, members = cell.known, cell.members or cell.known
        new = [item for item in items if item not in members]
        is_crowded = len(known) + len(new) > CROWDED
        if is_crowded and cell.place[0] != "instances":  # type: ignore[index]
            new = [item for item in map(plain, new) if item not in members]  # type: ignore[misc]
        if not new:
            return new
        if len(new) > 1:
            new = [*dict.fromkeys(new)]
        if not known:
            self._filled.append(cell)
        cell.known = (*known, *new)
        if cell.members is not None:
            cell.members.update(new)
        elif len(cell.known) > FEW:
            cell.members = {*cell.known}
        self.version += 1
        self._outdated.update(dict.fromkeys(cell.readers))
        return new

    def _cell(self, place: Place) -> Cell:
        """The cell of a place, or of that for which it is a name."""
        cell = self._cells.get(place)
        if cell is None:
            named = self._same(place)
            cell = Cell(place) if named is None else self._cell(named)
            self._cells[place] = cell
        return cell

    def _part(self, name: Place) -> Cell:
        """A cell for a place that was a name: something is added to it alone."""
        source = self._cells[name]
        cell = self._cells[name] = Cell(name)
        cell.is_begun = True
        cell.readers = tuple(source.readers)
        cell.copies = tuple(source.copies)
        self._copy(source, cell)
        return cell

    def _settle(self) -> None:
        while self._outdated:
            pending = deque(self._outdated)
            self._outdated.clear()
            while pending:
                self._evaluate(pending.popleft())

    def _evaluate(self, start: Cell) -> None:
        """Evaluate a cell, and those that it asks for and that nobody has asked for before."""
        running: list[tuple[Cell, Equation]] = []
        self._begin(start, running)
        copied: set[Cell] = set()
        """The cells that are evaluated because they are copied."""
        given: tuple[Object, ...] | None = None
        while running:
            cell, equation = running[-1]
            try:
                place = equation.send(given)  # type: ignore[arg-type]
            except StopIteration as end:
                running.pop()
                if end.value:
                    self._add(cell, end.value)
                if cell in copied:
                    copied.remove(cell)
                    given = ()
                elif running:
                    given = _read(cell, running[-1][0])
                continue
            is_copied = place[0] == WHOLE  # type: ignore[index]
            wanted = self._cell(place[1] if is_copied else place)  # type: ignore[index]
            if is_copied:
                self._copy(wanted, cell)
            if wanted.is_begun or not self._begin(wanted, running):
                given = () if is_copied else _read(wanted, cell)
            else:
                given = None
                if is_copied:
                    copied.add(wanted)

    def _begin(self, cell: Cell, running: list[tuple[Cell, Equation]]) -> bool:
        """Start the equation of a cell; whether there is one."""
        cell.is_begun = True
        self._outdated.pop(cell, None)
        equation = self._equation(cell.place)
        if equation is None:
            return False
        self.evaluations += 1
        running.append((cell, equation))
        return True

    def _copy(self, source: Cell, cell: Cell) -> None:
        """Let a cell have all that is in another, now and later."""
        if cell is not source and cell not in source.copies:
            source.copies = _linked(source.copies, cell)
            self._add(cell, source.known)


def _read(cell: Cell, reader: Cell) -> tuple[Object, ...]:
    """What is in a cell, for another that is evaluated again when there is more."""
    if reader not in cell.readers:
        cell.readers = _linked(cell.readers, reader)
    return cell.known


def _linked(links: Links, other: Cell) -> Links:
    """Links with another, which is new."""
    if isinstance(links, dict):
        links[other] = None
        return links
    if len(links) < FEW:
        return (*links, other)
    return dict.fromkeys((*links, other))
