"""Where a value of unknown origin comes from: calls, parameters and names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain, compress

from codemods.flow.calls import Calls
from codemods.flow.objects import Class, External, Instance, Place, Result


class Roots:
    """Goes backwards along the edges of the solution.

    What it finds is kept until there is something new. Places in a cycle have the same roots, and
    most others those of one place ahead of them: each place is visited once (Tarjan 1972,
    Depth-first search and linear graph algorithms), and a set of roots is the bits of a number.
    """

    def __init__(self, flow: Calls) -> None:
        self.flow = flow
        self._version = -1
        self._begin()

    def _begin(self) -> None:
        self._all: list[Place] = []
        self._found: dict[Place, int] = {}
        self._roots: dict[int, dict[Place, None]] = {}
        self._known: dict[ast.expr, set[str]] = {}

    def of(self, place: Place) -> Mapping[Place, None]:
        """The places from which everything at a place comes, and to which nothing comes."""
        self._forget()
        if place not in self._found:
            self._follow(place)
        bits = self._found[place]
        if bits not in self._roots:
            # The lowest first, without "0b".
            digits = map(int, bin(bits)[:1:-1])
            roots = compress(self._all, digits)
            self._roots[bits] = dict.fromkeys(roots)
        return self._roots[bits]

    def _follow(self, start: Place) -> None:
        """Find the roots of a place, and of all places from which objects come to it.

        This is Tarjan's algorithm without recursion: `ways` is the stack of the visits.
        """
        number: dict[Place, int] = {}
        lowest: dict[Place, int] = {}
        gathered: dict[Place, int] = {}
        open_places: list[Place] = []
        ways: list[tuple[Place, Iterator[Place]]] = []

        def enter(place: Place) -> None:
            sources = self.sources(place)
            number[place] = lowest[place] = len(number)
            gathered[place] = 0 if sources else self._bit(place)
            open_places.append(place)
            ways.append((place, iter(sources)))

        enter(start)
        while ways:
            place, sources = ways[-1]
            for source in sources:
                if source in self._found:
                    gathered[place] |= self._found[source]
                elif source in number:  # a cycle
                    lowest[place] = min(lowest[place], number[source])
                else:
                    # Its sources first; the loop goes on with the next of this place afterwards.
                    enter(source)
                    break
            # All its sources have been visited.
            else:
                ways.pop()
                if lowest[place] == number[place]:
                    self._close(open_places, place, gathered)
                if ways:
                    behind = ways[-1][0]
                    lowest[behind] = min(lowest[behind], lowest[place])
                    gathered[behind] |= self._found.get(place, 0)

    def sources(self, place: Place) -> list[Place]:
        """The places from which objects come to a place."""
        incoming = self.flow.solver.incoming().get(place, ())
        returned = self.flow.returned.get(place, ())
        return [*incoming, *returned]

    def _bit(self, root: Place) -> int:
        self._all.append(root)
        return 1 << len(self._all) - 1

    def _close(
        self, open_places: list[Place], first: Place, gathered: Mapping[Place, int]
    ) -> None:
        """Give the places of a cycle, or a single one, the roots of them all."""
        cycle = [open_places.pop()]
        while cycle[-1] != first:
            cycle.append(open_places.pop())
        bits = 0
        for place in cycle:
            bits |= gathered[place]
        self._found.update(dict.fromkeys(cycle, bits))

    def _forget(self) -> None:
        if self._version != self.flow.solver.version:
            self._version = self.flow.solver.version
            self._begin()

    def names(self, node: ast.expr) -> AbstractSet[str]:
        """The full names that an expression may stand for, as far as imports tell.

        `queue.Queue().put` is one. An empty name stands for what is not known.
        """
        self._forget()
        if node not in self._known:
            # While it is being found out: of what comes from itself alone, nothing is known.
            self._known[node] = {""}
            self._known[node] = self._find_names(node)
        return self._known[node]

    def _find_names(self, node: ast.expr) -> set[str]:
        place = self.flow.places.get(node)
        if place is None:
            return {""}
        items = self.flow.solver.at(place)
        names = {*chain.from_iterable(map(self._names_of, items))}
        if names:
            return names
        # Nothing is there: the expression itself tells more.
        match node:
            case ast.Attribute(value=value, attr=attribute):
                return _extended(self.names(value), f".{attribute}")
            case ast.Call(func=function):
                return _extended(self.names(function), "()")
            case ast.Subscript(value=value):
                return {*self.names(value)}
            case ast.Constant(value=value):
                return {f"builtins.{type(value).__name__}"}
            case ast.JoinedStr():
                return {"builtins.str"}
        # optimizer = factory(): the name of a variable tells nothing, its roots do.
        found: set[str] = set()
        for root in self.of(place):
            if isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
                found |= self.names(root)
            else:
                found.add("")
        return found

    def _names_of(self, item: object) -> Iterator[str]:
        match item:
            case External(name=name):
                yield name
            case Result(name=name):
                yield f"{name}()"
            # class Model(flax.linen.Module)
            case Class():
                yield from self._external_bases(item)
            case Instance(cls=cls):
                for name in self._external_bases(cls):
                    yield f"{name}()"

    def _external_bases(self, cls: Class) -> Iterator[str]:
        for base in self.flow.ancestry(cls):
            if isinstance(base, External):
                yield base.name


def _extended(names: AbstractSet[str], ending: str) -> set[str]:
    """The names with an ending; the empty one stays so."""
    return {name and f"{name}{ending}" for name in names}
