"""Which place in the new tree belongs to which place in what `rewrite` emits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Sequence

from optim2optax.parity.pairing.places import Place


def paired_places(
    expected: Sequence[Place], actual: Sequence[Place]
) -> dict[ast.expr, Place]:
    """The place in the new tree for each one in what `rewrite` emits.

    Those with the same scope and target belong together if there are as many on both sides, then
    the rest of a scope, then equal texts, then all that is left.
    """
    pairs: dict[ast.expr, Place] = {}

    def pair(key: Callable[[Place], Hashable], only_as_many: bool = True) -> None:
        """Pair places with the same key, among those that have no partner yet."""
        taken = {place.node for place in pairs.values()}
        left = [place for place in expected if place.node not in pairs]
        right = [place for place in actual if place.node not in taken]
        partners = _grouped(right, key)
        for group, places in _grouped(left, key).items():
            others = partners.get(group, [])
            if len(places) == len(others) or not only_as_many:
                for place, other in zip(places, others, strict=False):
                    pairs[place.node] = other

    # In `create_optimizer`, `tx = optax.adam(1e-3)` is still the only assignment to `tx`.
    pair(lambda place: (place.scope, place.target))
    pair(lambda place: place.scope)
    # One of two has been removed, and the other is as it was.
    pair(lambda place: (place.scope, ast.unparse(place.node)), only_as_many=False)
    pair(lambda place: ast.unparse(place.node), only_as_many=False)
    # A function has got another name. Here the numbers have to be the same on both sides again.
    pair(lambda _: None)
    return pairs


def _grouped(
    places: Iterable[Place], key: Callable[[Place], Hashable]
) -> dict[Hashable, list[Place]]:
    groups: dict[Hashable, list[Place]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return groups
