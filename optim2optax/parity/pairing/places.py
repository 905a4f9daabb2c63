"""The places of two trees that belong together."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter


@dataclass(frozen=True, eq=False)
class Place:
    """An expression that makes an optimizer: where it stands, and its text in the new tree."""

    path: str
    scope: str
    target: str
    text: str
    node: ast.expr


def paired_places(
    expected: Sequence[Place], actual: Sequence[Place]
) -> dict[Place, Place]:
    """The place in the new tree for each one in what `rewrite` emits.

    Those with the same scope and target belong together if there are as many on both sides, then
    those of a scope, and of a file, whose names have the same words of their own, such as two that
    are left alone. Then equal texts of a file, and the words of what is left of the tree. Others
    could only be paired by guessing.
    """
    pairs: dict[Place, Place] = {}

    def pair(key: Callable[[Place], Hashable], only_as_many: bool = True) -> None:
        """Pair places with the same key, among those that have no partner yet."""
        left = _grouped((one for one in expected if one not in pairs), key)
        taken = {*pairs.values()}
        right = _grouped((one for one in actual if one not in taken), key)
        for group, places in left.items():
            others = right.get(group, [])
            if len(places) == len(others) or not only_as_many:
                pairs.update(zip(places, others, strict=False))

    def words(group: Callable[[Place], Hashable]) -> Callable[[Place], Hashable]:
        """The words of their own of places without a partner, in their group."""
        left = _own_words([one for one in expected if one not in pairs], group)
        taken = {*pairs.values()}
        right = _own_words([one for one in actual if one not in taken], group)
        return {**left, **right}.get

    # In `create_optimizer`, `tx = optax.adam(1e-3)` is still the only assignment to `tx`.
    pair(attrgetter("path", "scope", "target"))
    # g_optimizer, d_optimizer have become d_tx, g_tx
    scope, file = attrgetter("path", "scope"), attrgetter("path")
    own = words(scope)
    pair(lambda place: (scope(place), own(place)))
    # A function has got another name.
    own = words(file)
    pair(lambda place: (file(place), own(place)))
    # One of two has been removed, and the other is as it was.
    pair(attrgetter("path", "scope", "text"), only_as_many=False)
    pair(attrgetter("path", "text"), only_as_many=False)
    # They are in another file.
    pair(attrgetter("scope", "target"))
    pair(words(lambda _: None))
    return pairs


WORD = re.compile(r"[a-z]+|[A-Z][a-z]*|\d+")


def _own_words(
    places: Sequence[Place], group: Callable[[Place], Hashable]
) -> dict[Place, frozenset[str]]:
    """The words in the names of each place that not all places of its group have."""
    found: dict[Place, frozenset[str]] = {}
    for several in _grouped(places, group).values():
        names = (f"{one.scope} {one.target}" for one in several)
        words = [{*map(str.lower, WORD.findall(name))} for name in names]
        shared = set.intersection(*words)
        found |= {
            one: frozenset(its - shared)
            for one, its in zip(several, words, strict=True)
        }
    return found


def _grouped(
    places: Iterable[Place], key: Callable[[Place], Hashable]
) -> dict[Hashable, list[Place]]:
    groups: dict[Hashable, list[Place]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return groups
