"""Which legacy objects an object carries, at any depth.

It carries what is in its elements, fields, filled-in arguments or results.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from codemods.flow.binding import values_of
from codemods.flow.calls import Calls
from codemods.flow.objects import (
    AnyDerived,
    Class,
    Container,
    Derivative,
    Derived,
    Function,
    Instance,
    LegacyObject,
    Method,
    Object,
    Opaque,
    Partial,
    Place,
)

Token = LegacyObject | Derived | AnyDerived
"""What is carried: an object, or something derived from it.

If only containers are around an object, they carry `Derived` of it, too.
"""

Carrier = Container | Instance | Opaque | Partial | Method | Function | Derivative


class Carriers:
    """Keeps account of what carriers carry while the solution grows.

    They may contain each other.
    """

    def __init__(self, flow: Calls) -> None:
        self.flow = flow
        self._carried: dict[Object, dict[Token, None]] = defaultdict(dict)
        self._outer: dict[Object, dict[Object, None]] = defaultdict(dict)
        """The objects that have an object as a part."""
        self._places: dict[Object, dict[Place, None]] = defaultdict(dict)
        """The watched places where an object is."""
        self._watched: set[Place] = set()
        self._inside: dict[Place, dict[Object, None]] = defaultdict(dict)
        """The objects of which a place is a part, if its name does not say so."""
        self._known: set[Object] = set()
        self._seen: dict[tuple[Object | None, Place], int] = defaultdict(int)
        """How many of the objects at a place have been taken into account for a holder."""
        self._united = 0
        """How many of the hierarchies that became part of others have been taken into account."""

    def watch(self, place: Place) -> None:
        """Let `update` report this place."""
        self._watched.add(place)

    def within(self, item: Object) -> Iterable[Token]:
        """What an object carries, or is."""
        match item:
            case LegacyObject():
                return (item, Derived(item))
            case Derived() | AnyDerived():
                return (item,)
        return tuple(self._carried.get(self._shared(item), ()))

    def at(self, places: Iterable[Place]) -> dict[Token, None]:
        """What the objects at some places carry, `AnyDerived` as it is."""
        items = dict.fromkeys(
            chain.from_iterable(map(self.flow.solver.standing, places))
        )
        return dict.fromkeys(chain.from_iterable(map(self.within, items)))

    def watched(self) -> Iterable[Place]:
        """The places that `update` reports."""
        return tuple(self._watched)

    def update(self, touched: Iterable[Place]) -> dict[Place, None]:
        """Take in what is new at some places.

        Returns the watched places among them, and those at which some object carries more now.
        """
        found: dict[Place, None] = {}
        self._follow_hierarchies(found)
        for place in touched:
            if place in self._watched:
                found[place] = None
            for holder in self._holders(place):
                for item in self._take_in(holder, place, found):
                    self._know(item, found)
            if place in self._watched:
                for item in self._new(None, place):
                    if isinstance(item, Carrier):
                        self._places[self._shared(item)][place] = None
                        self._know(item, found)
        return found

    def _shared(self, item: Object) -> Object:
        """The object that is asked in the place of another: fields are those of a hierarchy."""
        if not isinstance(item, Instance):
            return item
        top = self.flow.hierarchy(item.cls)
        return Instance(top) if isinstance(top, Class) else item

    def _follow_hierarchies(self, found: dict[Place, None]) -> None:
        """Let what is around a hierarchy carry what the one carries of which it has become part."""
        united = self.flow.united[self._united :]
        self._united += len(united)
        for old, new in united:
            part, whole = Instance(old), Instance(new)
            if part in self._known:
                self._outer[whole][part] = None
                self._know(whole, found)
                for token in tuple(self._carried[whole]):
                    self._carry(part, token, found)

    def _holders(self, place: Place) -> Iterator[Object]:
        """The objects of which a place is a part."""
        yield from self._inside.get(place, ())
        match place:
            # The other places of a container lead to that of all its elements.
            case ("elements" | "keys", Container() as container):
                yield container
            case ("field", Class() as cls, _) | (
                "some field" | "own elements",
                Class() as cls,
            ):
                yield Instance(cls)
            case ("field", Opaque() as opaque, _) | (
                "some field" | "own elements",
                Opaque() as opaque,
            ):
                yield opaque

    def _take_in(
        self, holder: Object, place: Place, found: dict[Place, None]
    ) -> list[Object]:
        """What has come to a part of an object, and may carry something itself."""
        carriers: list[Object] = []
        for item in self._new(holder, place):
            if isinstance(item, Carrier):
                self._outer[self._shared(item)][holder] = None
                carriers.append(item)
            for token in self.within(item):
                self._carry(holder, token, found)
        return carriers

    def _new(self, holder: Object | None, place: Place) -> Sequence[Object]:
        """The objects that have come to a place since the last time.

        What one of them carries later goes to its holders by itself.
        """
        start = self._seen[holder, place]
        items = self.flow.solver.since(place, start)
        self._seen[holder, place] = start + len(items)
        return items

    def _carry(self, holder: Object, token: Token, found: dict[Place, None]) -> None:
        """Let an object carry something, and all objects around it."""
        pending = [holder]
        while pending:
            item = pending.pop()
            # What is derived from an object is carried by containers alone, see `Token`.
            passes = isinstance(token, LegacyObject) or isinstance(item, Container)
            if passes and token not in self._carried[item]:
                self._carried[item][token] = None
                found.update(self._places.get(item, {}))
                pending.extend(self._outer.get(item, ()))

    def _know(self, item: Object, found: dict[Place, None]) -> None:
        """Look into an object once; what comes to its parts later, `update` takes in."""
        pending = [item]
        while pending:
            outer = self._shared(pending.pop())
            if outer in self._known:
                continue
            self._known.add(outer)
            for inner in _wrapped(outer):
                self._outer[self._shared(inner)][outer] = None
                pending.append(inner)
                for token in self.within(inner):
                    self._carry(outer, token, found)
            for place in self._parts(outer):
                self._inside[place][outer] = None
                pending += self._take_in(outer, place, found)

    def _parts(self, item: Object) -> Iterator[Place]:
        """The places of an object's parts; `_holders` finds the object for the other places."""
        match item:
            case Function(node=node):
                yield ("return", node)
            # functools.partial(train_step, optimizer)
            case Partial(call=call):
                for value in values_of(call):
                    given = value.value if isinstance(value, ast.Starred) else value
                    yield self.flow.places[given]
            case Container():
                yield ("elements", item)
            case Instance(cls=cls):
                yield from self.flow.field_places(cls)


def _wrapped(item: Object) -> Iterator[Object]:
    """The objects that one is made of."""
    match item:
        # trainer.step, with `trainer` as its owner
        case Method(owner=owner, function=function):
            yield owner
            if function is not None:
                yield function
        case Partial(function=function) | Derivative(function=function):
            yield function
