"""What differs between two checkpoints, leaf by leaf."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optim2optax.checkpoints.flax_msgpack import Array, Tree, as_numpy
from optim2optax.checkpoints.state_dict_places import leaves

AT_ONCE = 2**20
"""The number of elements that are compared at once."""


@dataclass(frozen=True)
class LeafDifference:
    """A leaf that differs between two checkpoints: its place, and what differs.

    `largest` is the largest difference of its numbers, if they differ and it is finite.
    """

    path: str
    what: str
    largest: float | None = None


def differences(first: Tree, second: Tree) -> Iterator[LeafDifference]:
    """The leaves that are only in one tree, or differ, in the order of the first."""
    old, new = dict(leaves(first)), dict(leaves(second))
    for path, leaf in old.items():
        place = "/".join(path)
        if path not in new:
            yield LeafDifference(place, "is only in the first")
        else:
            yield from _between(place, leaf, new[path])
    for path in new:
        if path not in old:
            yield LeafDifference("/".join(path), "is only in the second")


def _between(place: str, old: Tree, new: Tree) -> Iterator[LeafDifference]:
    """The difference between two leaves, if there is one."""
    if not isinstance(old, Array) or not isinstance(new, Array):
        if type(old) is not type(new) or old != new:
            yield LeafDifference(place, f"is {_described(old)}, then {_described(new)}")
    elif (old.shape, old.dtype) != (new.shape, new.dtype):
        yield LeafDifference(place, f"is {_described(old)}, then {_described(new)}")
    elif old.data != new.data:
        largest = _largest(as_numpy(old).ravel(), as_numpy(new).ravel())
        finite = largest if math.isfinite(largest) else None  # JSON has no NaN
        yield LeafDifference(place, f"differs by {largest:.3g} at most", finite)


def _described(leaf: Tree) -> str:
    if isinstance(leaf, Array):
        return f"{leaf.shape} {leaf.dtype}"
    return repr(leaf)


def _largest(old: Any, new: Any) -> float:
    """The largest difference between two arrays of numbers; NaN if only one has NaN somewhere."""
    found = 0.0
    kind = np.complex128 if old.dtype.kind == "c" else np.float64
    for start in range(0, len(old), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        one = old[part].astype(kind)
        other = new[part].astype(kind)
        # where both are NaN, or the same infinity, a difference would be NaN
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        gaps = np.abs(np.where(same, 0.0, one) - np.where(same, 0.0, other))
        found = float(np.max([found, gaps.max()]))
    return found
