"""Which objects hold some others, at any depth: found backwards from these, once for all places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from codemods.flow.objects import ANY_DERIVED, Object, Partial, Place
from codemods.flow.solver import Solver


def holders(
    solver: Solver,
    is_one: Callable[[Object], bool],
    parts: Callable[[Object], Iterable[Place]],
) -> set[Object]:
    """The objects of a kind, and all that hold one of them.

    A partial application counts as the function behind it.

    Args:
      solver: knows what is at which place.
      is_one: whether an object is of the kind.
      parts: the places of the parts of an object.
    """
    everything: set[Object] = set()
    for place in solver.places():
        everything.update(solver.standing(place))
    objects: set[Object] = set()
    for one in everything:
        objects.add(unwrapped(one))
        objects.update(map(unwrapped, solver.members(one)))
    outer: dict[Object, list[Object]] = defaultdict(list)
    for item in solver.members(ANY_DERIVED):
        outer[item].append(ANY_DERIVED)
    for item in objects:
        for place in parts(item):
            for inner in solver.standing(place):
                outer[unwrapped(inner)].append(item)
    # Outwards from the objects of the kind.
    found = set(filter(is_one, objects))
    pending = list(found)
    while pending:
        new = set(outer[pending.pop()]) - found
        found |= new
        pending += new
    return found


def unwrapped(item: Object) -> Object:
    """The function behind partial applications; anything else itself."""
    while isinstance(item, Partial):
        item = item.function
    return item
