"""The replays by which two optimizers are probed: the main one, and short special ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.judging.judge import first_far_apart, judge
from optim2optax.parity.judging.movement import PyTree, leaves_by_path
from optim2optax.parity.optimizer.probe import (
    extreme_gradients,
    few_params,
    params_around,
    probe_params,
    recorded_gradients,
)
from optim2optax.parity.optimizer.same_function import (
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
        trees = replay(old, new, few, gradients, rates_of(overrides, number))
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
        apart = first_far_apart(start, before, after, gate)
        if apart is not None:
            apart = replace(apart, ulp=None, link=EXTREME)
            return replace(found, verdict=Verdict.DIFFERENT, first_difference=apart)
    return found
