"""Which objects hold some others, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from codemods.inference.objects import Object, Partial, Place

if TYPE_CHECKING:
    from codemods.inference.answers import Answers


class Holders:
    """The objects of a kind, and all that hold one of them, found out when they are asked for.

    A partial application counts as the function behind it.

    Args:
      solver: knows what is at which place.
      is_one: whether an object is of the kind.
      parts: the places of the parts of an object.
    """

    def __init__(
        self,
        solver: Answers,
        is_one: Callable[[Object], bool],
        parts: Callable[[Object], Iterable[Place]],
    ) -> None:
        self._solver = solver
        self._is_one = is_one
        self._parts = parts
        self._known: dict[Object, bool] = {}

    def __contains__(self, item: Object) -> bool:
        start = unwrapped(item)
        if start not in self._known:
            self._known[start] = self._holds(start)
        return self._known[start]

    def _holds(self, start: Object) -> bool:
        seen = {start}
        pending = [start]
        while pending:
            item = pending.pop()
            if self._is_one(item) or self._known.get(item):
                return True
            for place in self._parts(item):
                for inner in map(unwrapped, self._solver.at(place)):
                    if inner not in seen:
                        seen.add(inner)
                        pending.append(inner)
        return False


def unwrapped(item: Object) -> Object:
    """The function behind partial applications; anything else itself."""
    while isinstance(item, Partial):
        item = item.function
    return item
