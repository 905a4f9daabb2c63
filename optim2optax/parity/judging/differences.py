"""Where two trajectories first differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.judging.comparison import Difference
from optim2optax.parity.judging.leaves import LeafTrajectories, largest_per_step


def finite_on_one_side(
    before: LeafTrajectories, after: LeafTrajectories
) -> Difference | None:
    """The first value that is finite on one side alone, if there is one."""
    # 1.0 where one side alone is finite, so that any such value is beyond a gate of 1.
    apart: dict[str, NDArray[np.float64]] = {}
    for leaf, values in before.items():
        differs = _is_finite(values) != _is_finite(after[leaf])
        apart[leaf] = differs.astype(np.float64)
    if not any(found.any() for found in apart.values()):
        return None
    return first_beyond(apart, before, after, gate=1.0)


def _is_finite(values: NDArray[Any]) -> NDArray[np.bool_]:
    # NumPy has no `isfinite` for bfloat16.
    wide = values.astype(np.float64)
    return np.isfinite(wide)


def first_beyond(
    ratios: LeafTrajectories,
    before: LeafTrajectories,
    after: LeafTrajectories,
    gate: float,
) -> Difference:
    """The first step at which any leaf is beyond the gate, and there the worst element."""
    first_steps: dict[str, int] = {}
    for leaf, ratio in ratios.items():
        is_beyond = np.asarray(largest_per_step(ratio)) >= gate
        if is_beyond.any():
            first_steps[leaf] = int(np.argmax(is_beyond))
    step = min(first_steps.values())
    leaves = [leaf for leaf, first in first_steps.items() if first == step]
    leaf = max(leaves, key=lambda leaf: float(ratios[leaf][step].max()))
    there = ratios[leaf][step]
    worst = np.unravel_index(int(np.argmax(there)), there.shape)
    index = tuple(int(place) for place in worst)
    p = float(before[leaf][step][index])
    q = float(after[leaf][step][index])
    return Difference(step, leaf, index, p, q, _ulp_distance(p, q))


def _ulp_distance(p: float, q: float) -> int | None:
    """How many float64 numbers lie between two."""
    if not (np.isfinite(p) and np.isfinite(q)):
        return None
    return abs(_rank(p) - _rank(q))


def _rank(value: float) -> int:
    """The place of a float64 number in the order of all, from 0 for zero."""
    # Their bits, read as whole numbers, ascend with the numbers but for the sign, which is a bit.
    bits = int(np.float64(value).view(np.int64))
    without_sign = bits & (2**63 - 1)
    return bits if bits >= 0 else -without_sign
