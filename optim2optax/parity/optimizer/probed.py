"""The replays by which two optimizers are probed: the main one, and short special ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.judging.comparison import Comparison, Difference, Verdict
from optim2optax.parity.judging.judge import first_beyond, judge
from optim2optax.parity.judging.leaves import (
    LeafTrajectories,
    PyTree,
    leaves_by_path,
)
from optim2optax.parity.optimizer.probe import (
    extreme_gradients,
    few_params,
    params_around,
    probe_params,
    recorded_gradients,
)
from optim2optax.parity.optimizer.transformations import (
    compare_transformations,
    rates_of,
    replay,
)

LIKELY = 1e-9
"""How far finite values may be apart where gradients are extreme.

It is in relation to the movement of the element, or to its value.
"""

EXTREME = "what becomes of an extreme gradient"

FEW_STEPS = 12
"""The steps of the replay for leaves of other sizes."""


def compare_probed(
    old: Any,
    new: Any,
    steps: int = 120,
    seed: int = 0,
    params: PyTree = None,
    overrides: Callable[[int], float] | None = None,
    horizon: int = 0,
    sizes: Sequence[int] = (),
) -> Comparison:
    """Compare as `compare_transformations` does, and in further replays.

    These have extreme gradients, more steps, and leaves of other sizes.

    Args:
        old: an `OptimizerDef` of the old `flax.optim`, or a gradient transformation.
        new: what is to replace it, likewise.
        steps: of the main replay.
        seed: of parameters and gradients.
        params: what to probe with instead of `probe_params`.
        overrides: the learning rate at each step.
        horizon: the steps of a further replay, of few parameters; it takes place if they are more
            than `steps`.
        sizes: numbers at which the optimizer does otherwise by the size of a leaf: further leaves
            are as large, larger and smaller.

    Returns:
        The comparison of the main replay, or of the first further one in which the two differ.
    """
    params = probe_params(seed) if params is None else params
    found = compare_transformations(old, new, steps, seed, params, overrides)
    if found.verdict not in (Verdict.IDENTICAL, Verdict.EQUIVALENT):
        return found

    further: list[tuple[PyTree, int]] = []
    if horizon > steps:
        further.append((few_params(params), horizon))
    if sizes:
        further.append((params_around(sizes, seed), FEW_STEPS))
    for few, number in further:
        gradients = recorded_gradients(few, number, seed)
        trees = replay(
            old, new, few, gradients, rates_of(overrides, number), quick=True
        )
        start, before, after = map(leaves_by_path, trees)
        other = judge(before, after, start)
        if other.verdict is Verdict.DIFFERENT:
            return other
    gradients = extreme_gradients(params, steps, seed)
    for wide in (True, False):
        trees = replay(old, new, params, gradients, rates_of(overrides, steps), wide)
        start, before, after = map(leaves_by_path, trees)
        # In float32, only what overflows on one side alone counts.
        gate = LIKELY if wide else np.inf
        difference = _apart(start, before, after, gate)
        if difference is not None:
            return replace(
                found, verdict=Verdict.DIFFERENT, first_difference=difference
            )
    return found


def _apart(
    start: LeafTrajectories,
    before: LeafTrajectories,
    after: LeafTrajectories,
    gate: float,
) -> Difference | None:
    """The first value that is finite on one side alone, or beyond a gate."""
    # 1.0 where the two are apart.
    apart: dict[str, NDArray[np.float64]] = {}
    for leaf, values in before.items():
        p = np.asarray(values, np.float64)
        q = np.asarray(after[leaf], np.float64)
        apart[leaf] = _are_apart(start[leaf], p, q, gate).astype(np.float64)
    if not any(found.any() for found in apart.values()):
        return None
    first = first_beyond(apart, before, after, gate=1.0)
    return replace(first, ulp=None, link=EXTREME)


def _are_apart(
    start: NDArray[Any], p: NDArray[np.float64], q: NDArray[np.float64], gate: float
) -> NDArray[np.bool_]:
    """Whether each element at each step is finite on one side alone, or beyond a gate."""
    p_is_finite = np.isfinite(p)
    q_is_finite = np.isfinite(q)
    # Infinity minus infinity, and what overflows, is sorted out by the two.
    with np.errstate(all="ignore"):
        reached = np.maximum(np.abs(p - start), np.abs(p))
        scale = np.max(reached, axis=0, initial=0.0, where=np.isfinite(reached))
        is_far = np.abs(p - q) > gate * scale
    is_beyond = p_is_finite & q_is_finite & is_far
    is_finite_alone = p_is_finite != q_is_finite
    return np.asarray(is_beyond | is_finite_alone)
