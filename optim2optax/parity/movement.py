"""How far each leaf moves, which is what its errors are measured against.

A leaf is judged by its own movement. There is one exception, in a closed loop: a leaf that rounding alone moves, such as the bias
ahead of a BatchNorm, whose gradients cancel. Adam blows their rounding up, on each side another one, so that such a leaf is
judged by the movement of the leaves beside it, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.exercised import LeafTrajectories

ROUNDING_OF_GRADIENTS = 1e-12
"""A leaf whose gradients stay below this part of those beside it has none but rounding: what cancels leaves about 1e-16."""

ROUNDING_OF_MOVEMENT = 1e-7
"""Where gradients are not known, a leaf that moves less than this part of those beside it; the gate of a closed loop."""

EPSILON = float(np.finfo(np.float64).eps)

Rounding = Mapping[str, bool]
"""Of each leaf whose gradients are known, whether they are rounding alone."""


def movements(before: LeafTrajectories, start: LeafTrajectories, gate: float) -> dict[str, float]:
    """How far each leaf gets from its start, in its largest element; at least as far as its own storage may round it.

    Rounding of one unit in the last place a side and step makes less than the gate of this.
    """
    return {
        leaf: max(
            _moved(values, start[leaf]),
            2 * len(values) * EPSILON / gate * _largest(values.astype(np.float64)),
        )
        for leaf, values in before.items()
    }


def moved_by_rounding(
    before: LeafTrajectories, start: LeafTrajectories, known: Rounding
) -> dict[str, float]:
    """The leaves that rounding alone moves, by the movement of the leaves beside them.

    Args:
        before: what the old side held.
        start: what it began with.
        known: what the gradients tell, by paths of parameters; a leaf is the parameter, or belongs to it, whose path is the
            longest that its own ends in. If it is empty, the movement has to tell.
    """
    moved = {
        leaf: _moved(values, start[leaf])
        for leaf, values in before.items()
        if jnp.issubdtype(values.dtype, jnp.floating)
    }
    beside = largest_beside(moved)

    def is_rounding(leaf: str) -> bool:
        if known:
            names = [name for name in known if leaf == name or leaf.endswith(f"/{name}")]
            return bool(names) and known[max(names, key=len)]
        return 0 < moved[leaf] < ROUNDING_OF_MOVEMENT * beside[leaf]

    return {leaf: beside[leaf] for leaf in moved if is_rounding(leaf)}


def gradients_of_rounding(sizes: Mapping[str, float]) -> dict[str, bool]:
    """Of each leaf, by the size of its largest gradient, whether it has none but rounding. Zeros are no rounding."""
    beside = largest_beside(sizes)
    return {leaf: 0 < size < ROUNDING_OF_GRADIENTS * beside[leaf] for leaf, size in sizes.items()}


def largest_beside(sizes: Mapping[str, float]) -> dict[str, float]:
    """The largest size among the leaves of the same parent; of a leaf that is alone there, among all."""
    siblings: dict[str, list[float]] = {}
    for leaf, size in sizes.items():
        siblings.setdefault(_parent(leaf), []).append(size)
    everywhere = max(sizes.values(), default=0.0)
    return {
        leaf: max(siblings[_parent(leaf)]) if len(siblings[_parent(leaf)]) > 1 else everywhere
        for leaf in sizes
    }


def _parent(leaf: str) -> str:
    return leaf.rpartition("/")[0]


def _moved(values: NDArray[Any], start: NDArray[Any]) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return _largest(values.astype(np.float64) - start)


def _largest(values: NDArray[np.float64]) -> float:
    return float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
