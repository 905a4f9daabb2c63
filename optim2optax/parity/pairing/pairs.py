"""Which place in the new tree belongs to which place in what `rewrite` emits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Sequence

from optim2optax.parity.pairing.places import Place


def paired_places(expected: Sequence[Place], actual: Sequence[Place]) -> dict[ast.expr, Place]:
    """The place in the new tree for each one in what `rewrite` emits.

    Those with the same scope and target belong together if there are as many on both sides, then
    the rest of a scope, then equal texts, then all that is left.
    """
    pairs: dict[ast.expr, Place] = {}

    def pair(key: Callable[[Place], Hashable], only_as_many: bool = True) -> None:
        taken = {place.node for place in pairs.values()}
        left = _grouped([place for place in expected if place.node not in pairs], key)
        right = _grouped([place for place in actual if place.node not in taken], key)
        for group, places in left.items():
            others = right.get(group, [])
            if len(places) == len(others) or not only_as_many:
                pairs.update(zip((place.node for place in places), others, strict=False))

    pair(lambda place: (place.scope, place.target))
    pair(lambda place: place.scope)
    pair(lambda place: (place.scope, ast.unparse(place.node)), only_as_many=False)
    pair(lambda place: ast.unparse(place.node), only_as_many=False)
    # Here the number of places has to be the same on both sides again.
    pair(lambda _: None)
    return pairs


def _grouped(
    places: Iterable[Place], key: Callable[[Place], Hashable]
) -> dict[Hashable, list[Place]]:
    groups: dict[Hashable, list[Place]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return groups
