"""What differs between two checkpoints, leaf by leaf."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optim2optax.checkpoints.flax_msgpack import Array, Tree, as_numpy
from optim2optax.checkpoints.places import leaves

AT_ONCE = 2**20
"""So many elements are compared at once."""


@dataclass(frozen=True)
class Difference:
    """A leaf that is not the same in two checkpoints: its place, what differs, and, if that is a number, by how much at most."""

    path: str
    what: str
    largest: float | None = None


def differences(first: Tree, second: Tree) -> Iterator[Difference]:
    """The leaves that are in one tree alone, or differ, in the order of the first."""
    ours, theirs = dict(leaves(first)), dict(leaves(second))
    for path, leaf in ours.items():
        place = "/".join(path)
        if path not in theirs:
            yield Difference(place, "is only in the first")
        else:
            yield from _between(place, leaf, theirs[path])
    yield from (
        Difference("/".join(path), "is only in the second") for path in theirs if path not in ours
    )


def _between(place: str, ours: Tree, theirs: Tree) -> Iterator[Difference]:
    if not isinstance(ours, Array) or not isinstance(theirs, Array):
        if type(ours) is not type(theirs) or ours != theirs:
            yield Difference(place, f"is {_said(ours)}, then {_said(theirs)}")
    elif (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        yield Difference(place, f"is {_said(ours)}, then {_said(theirs)}")
    elif ours.data != theirs.data:
        largest = _largest(as_numpy(ours).ravel(), as_numpy(theirs).ravel())
        yield Difference(
            place, f"differs by {largest:.3g} at most", largest if math.isfinite(largest) else None
        )


def _said(leaf: Tree) -> str:
    return f"{leaf.shape} {leaf.dtype}" if isinstance(leaf, Array) else repr(leaf)


def _largest(ours: Any, theirs: Any) -> float:
    """The largest difference between two arrays of numbers; NaN if one has it where the other has not."""
    found = 0.0
    for start in range(0, len(ours), AT_ONCE):
        kind = np.complex128 if ours.dtype.kind == "c" else np.float64
        one, other = (part[start : start + AT_ONCE].astype(kind) for part in (ours, theirs))
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        gaps = np.abs(np.where(same, 0.0, one) - np.where(same, 0.0, other))
        found = float(np.max([found, gaps.max()]))
    return found
