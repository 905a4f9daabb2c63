"""The worklist: objects move along edges between places until nothing is new.

Only what is new at a place moves on from there, all of it at once (difference propagation: Pearce,
Kelly and Hankin 2003). Places in a cycle are not made one, as the literature does: measured on
large libraries, cycles are few, and finding them costs more.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from codemods.flow.objects import ANY_DERIVED, Derived, Object, Place

Watcher = Callable[[Object], object]

MANY = 8
"""Up to so many derived objects at one place, each moves on by itself."""


class EntangledError(RuntimeError):
    """So many objects reach so many places that the analysis would not come to an end."""


class Solver:
    """Points-to sets of places, edges along which objects move, and watchers of places.

    A watcher is called once for each object that reaches its place.

    Everything is kept in order of arrival, so that a run depends on its input alone. With more than
    `most` objects at places it raises EntangledError.

    Of more than a few objects at one place that are derived by code out of view, it hardly matters
    any more which they are: they move on as one, `AnyDerived`. Watchers are called for that alone.
    The answer to what is `at` a place has each object for which it stands: all that came to any
    such place.
    """

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._derived: dict[Object, None] = {}
        """What `AnyDerived` stands for."""
        self._crowded: dict[Place, list[Object]] = {}
        """The derived objects at places with many objects, without those of `AnyDerived`."""
        self._every: dict[tuple[Object, ...], tuple[Object, ...]] = {}
        """What the objects at a place stand for, if `AnyDerived` is among them."""
        self._objects: dict[
            Place, dict[Object, bool]
        ] = {}  # True once watchers have been called
        self._edges: dict[Place, dict[Place, None]] = {}
        self._watchers: dict[Place, list[Watcher]] = {}
        self._new: dict[Place, list[Object]] = {}  # what has yet to move on
        self._pending: deque[Place] = deque()  # the places where something is new
        self._awaiting: dict[Hashable, Callable[[], None]] = {}  # see `once_settled`
        self._touched: dict[Place, None] = {}  # see `take_touched`
        self.facts = 0
        self.version = 0
        """Grows with every fact and edge."""
        self._incoming: dict[Place, dict[Place, None]] | None = None

    def at(self, place: Place) -> Iterable[Object]:
        """The objects known to reach a place."""
        objects = tuple(self._objects.get(place, ()))
        if ANY_DERIVED not in objects:
            return objects
        if objects not in self._every:
            every = chain.from_iterable(map(self.members, objects))
            self._every[objects] = tuple(dict.fromkeys(every))
        return self._every[objects]

    def has(self, place: Place, item: Object) -> bool:
        """Whether an object is known to reach a place."""
        objects = self._objects.get(place, ())
        if item in objects:
            return True
        return item in self._derived and ANY_DERIVED in objects

    def standing(self, place: Place) -> Iterable[Object]:
        """The objects known to reach a place, `AnyDerived` as it is."""
        return tuple(self._objects.get(place, ()))

    @property
    def derived(self) -> int:
        """The number of objects for which `AnyDerived` stands."""
        return len(self._derived)

    def members(self, item: Object) -> Iterable[Object]:
        """What an object stands for: itself, unless it is `AnyDerived`."""
        return self._derived if item is ANY_DERIVED else (item,)

    def since(self, place: Place, start: int) -> list[Object]:
        """The objects at a place behind the first `start` of them, `AnyDerived` as it is."""
        objects = self._objects.get(place, {})
        if len(objects) <= start:
            return []
        return list(islice(objects, start, None))

    def places(self) -> Iterable[Place]:
        """All places that something reaches."""
        return tuple(self._objects)

    def add(self, place: Place, item: Object) -> bool:
        """Let an object reach a place. Returns whether it was not there before."""
        if item in self._objects.get(place, ()):
            return False
        return self._reach(place, [item])

    def add_all(self, place: Place, items: Iterable[Object]) -> bool:
        """Let some objects reach a place. Returns whether any of them was not there before."""
        present = self._objects.get(place, ())
        new = [item for item in items if item not in present]
        return bool(new) and self._reach(place, new)

    def connect(self, source: Place, target: Place) -> None:
        """Let everything at `source` reach `target`."""
        edges = self._edges.setdefault(source, {})
        if source == target or target in edges:
            return
        edges[target] = None
        self.version += 1
        if self._incoming is not None:
            self._incoming.setdefault(target, {})[source] = None
        self.add_all(target, self._objects.get(source, ()))

    def watch(self, place: Place, watcher: Watcher) -> None:
        """Call `watcher` once for every object that reaches `place`, now or later."""
        self._watchers.setdefault(place, []).append(watcher)
        # For objects that are still on their way, `solve` will call it.
        for item, is_settled in tuple(self._objects.get(place, {}).items()):
            if is_settled:
                watcher(item)

    def take_touched(self) -> dict[Place, None]:
        """The places that something new has reached since this was asked last."""
        touched, self._touched = self._touched, {}
        return touched

    def targets(self, place: Place) -> Iterable[Place]:
        """The places that receive everything that is at `place`."""
        return tuple(self._edges.get(place, ()))

    def edges(self) -> Iterator[tuple[Place, Place]]:
        """All pairs of a place and one that receives everything that is there."""
        for source, targets in self._edges.items():
            for target in targets:
                yield source, target

    def incoming(self) -> Mapping[Place, Iterable[Place]]:
        """The places from which each place receives everything that is there."""
        if self._incoming is None:
            self._incoming = {}
            for source, target in self.edges():
                self._incoming.setdefault(target, {})[source] = None
        return self._incoming

    def reaches(self, source: Place, accept: Callable[[Place], bool]) -> bool:
        """Whether objects at `source` would reach a place that `accept` accepts."""
        seen: dict[Place, None] = {source: None}
        pending = [source]
        while pending:
            place = pending.pop()
            if accept(place):
                return True
            for target in self._edges.get(place, ()):
                if target not in seen:
                    seen[target] = None
                    pending.append(target)
        return False

    def once_settled(self, key: Hashable, action: Callable[[], None]) -> None:
        """Act when nothing moves any more, once for each key; whatever is new then moves on."""
        self._awaiting.setdefault(key, action)

    def solve(self) -> None:
        """Run to the fixed point."""
        self._move()
        while self._awaiting:
            awaiting, self._awaiting = self._awaiting, {}
            for action in awaiting.values():
                action()
            self._move()

    def _move(self) -> None:
        """Move everything that is new."""
        while self._pending:
            place = self._pending.popleft()
            new = self._new.pop(place)
            for target in tuple(self._edges.get(place, ())):
                self.add_all(target, new)
            objects = self._objects[place]
            for item in new:
                objects[item] = True
                # A copy: a watcher may add others to this place, which `watch` calls itself.
                for watcher in self._watchers.get(place, [])[:]:
                    watcher(item)

    def _reach(self, place: Place, new: list[Object]) -> bool:
        count = len(new) + len(self._objects.get(place, ()))
        if count > MANY or ANY_DERIVED in new:
            new = self._with_derived_as_one(place, new)
            if not new:
                return False
        self.facts += len(new)
        self.version += 1
        if self.facts > self._most:
            raise EntangledError
        self._objects.setdefault(place, {}).update(dict.fromkeys(new, False))
        self._touched[place] = None
        # A place is pending once, however much is new there.
        if place not in self._new:
            self._new[place] = []
            self._pending.append(place)
        self._new[place] += new
        return True

    def _with_derived_as_one(self, place: Place, new: list[Object]) -> list[Object]:
        """What is new at a place, with `AnyDerived` for too many derived objects."""
        arriving = [item for item in new if isinstance(item, Derived)]
        if not arriving and ANY_DERIVED not in new:
            return new
        present = self._objects.get(place, {})
        derived = [*self._derived_at(place), *arriving]
        are_many = len(derived) > MANY
        if are_many and not self._derived.keys() >= {*derived}:
            # `AnyDerived` stands for more than before, at all places.
            self.version += 1
            self._derived.update(dict.fromkeys(derived))
            self._every.clear()
        if not are_many and ANY_DERIVED not in present and ANY_DERIVED not in new:
            if place in self._crowded:
                self._crowded[place] += arriving
            return new
        others = [
            item
            for item in new
            if item not in self._derived and item is not ANY_DERIVED
        ]
        if place in self._crowded:
            self._crowded[place] += (
                item for item in others if isinstance(item, Derived)
            )
        if ANY_DERIVED not in present:
            others.append(ANY_DERIVED)
        return others

    def _derived_at(self, place: Place) -> Sequence[Object]:
        """The derived objects that have come to a place each by itself."""
        if place not in self._crowded:
            present = self._objects.get(place, ())
            derived: list[Object] = [
                item for item in present if isinstance(item, Derived)
            ]
            if len(present) <= MANY:
                return derived
            self._crowded[place] = derived
        return self._crowded[place]
