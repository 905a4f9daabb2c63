"""What differs between two checkpoints, leaf by leaf."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optim2optax.checkpoints.flax_msgpack import Tree
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
    old = dict(leaves(first))
    new = dict(leaves(second))
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
    are_arrays = isinstance(old, np.ndarray) and isinstance(new, np.ndarray)
    if are_arrays:
        is_alike = (old.shape, old.dtype) == (new.shape, new.dtype)
    else:
        # 1 and 1.0 are equal, and not the same
        is_alike = type(old) is type(new) and old == new
    if not is_alike:
        yield LeafDifference(place, f"is {_described(old)}, then {_described(new)}")
    elif are_arrays and _bytes(old) != _bytes(new):
        largest = _largest(old.ravel(), new.ravel())
        finite = largest if math.isfinite(largest) else None  # JSON has no NaN
        yield LeafDifference(place, f"differs by {largest:.3g} at most", finite)


def _bytes(array: np.ndarray[Any, Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _described(leaf: Tree) -> str:
    if isinstance(leaf, np.ndarray):
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
        both_nan = np.isnan(one) & np.isnan(other)
        same = (one == other) | both_nan
        one = np.where(same, 0.0, one)
        other = np.where(same, 0.0, other)
        gap = np.abs(one - other).max()
        # NaN stays: that of Python would lose it
        found = float(np.max([found, gap]))
    return found
