"""Which part of a transformation departs from the optimizer that it replaces.

Gradients of several sizes make it show. Weight decay moves a leaf that has no gradient. A wrong
rate scales every movement alike. A clip shows in large gradients alone, an epsilon in tiny ones
alone, and moments only once there have been two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from codemods.model import EmittedOptimizer
from optim2optax.parity.judging.comparison import Comparison
from optim2optax.parity.judging.leaves import leaves_by_path as by_path
from optim2optax.parity.optimizer.coverage import sets_rate
from optim2optax.parity.optimizer.evaluating import evaluate
from optim2optax.parity.optimizer.transformations import replay

AGREE = 1e-9
"""Movements that differ by less than this, in relation to the larger one, agree."""

STEPS = 3
LARGE, USUAL, TINY = 1e4, 1.0, 1e-7


def with_link(
    comparison: Comparison, emitted: EmittedOptimizer, seed: int = 0
) -> Comparison:
    """The comparison with the link that departs in its first difference, if there is one.

    It is decay, rate, clip, epsilon or moments.
    """
    first = comparison.first_difference
    if first is None or first.link is not None:
        return comparison
    old, new = evaluate(emitted)
    random = np.random.default_rng(seed)
    # Few and small leaves suffice to see a link.
    params = {"kernel": random.normal(size=(4, 3)), "bias": random.normal(size=3)}
    rates = np.full(STEPS, 0.02) if sets_rate(emitted) else None

    def movements(scale: float) -> tuple[NDArray[Any], NDArray[Any]]:
        def gradients_of(leaf: NDArray[Any]) -> NDArray[Any]:
            # They keep the sign of the leaf, so that moments do not cancel.
            magnitudes = 0.5 + random.random((STEPS, *leaf.shape))
            signed: NDArray[Any] = scale * magnitudes * np.sign(leaf)
            return signed

        gradients = jax.tree_util.tree_map(gradients_of, params)
        start, before, after = replay(old, new, params, gradients, rates)
        return _movement(start, before), _movement(start, after)

    named = replace(first, link=_link(movements))
    return replace(comparison, first_difference=named)


def _link(
    movements: Callable[[float], tuple[NDArray[Any], NDArray[Any]]],
) -> str | None:
    """The link that departs, by what gradients of a scale move on the old side and on the new."""
    # Without gradients, nothing but decay moves a leaf.
    if not _agree(*movements(0.0)):
        return "decay"
    old, new = movements(USUAL)
    if _agree(old, new):
        if not _agree(*movements(LARGE)):
            return "clip"
        return None if _agree(*movements(TINY)) else "epsilon"
    if _is_scaled(old, new):
        return "rate"
    if _apart(*movements(TINY)) > 10 * _apart(old, new):
        return "epsilon"
    # In the first step, moments and their correction cancel.
    return "moments" if _agree(old[:1], new[:1]) else "moments or bias correction"


def _is_scaled(old: NDArray[Any], new: NDArray[Any]) -> bool:
    """Whether all movements of the new side are those of the old one times about one factor."""
    moved = old != 0
    ratios = new[moved] / old[moved]
    if not ratios.size:
        return False
    # Where parameters decay, a movement that is larger makes the next one smaller.
    spread = float(np.ptp(ratios))
    return bool(spread < 0.01 * abs(ratios[0] - 1))


def _movement(start: Any, steps: Any) -> NDArray[Any]:
    """How far each element got from its start, by step, over all leaves."""
    begin = by_path(start)
    rows: list[NDArray[Any]] = []
    for leaf, values in by_path(steps).items():
        movement = values - begin[leaf]
        rows.append(movement.reshape(len(values), -1))
    return np.concatenate(rows, axis=1)


def _agree(old: NDArray[Any], new: NDArray[Any]) -> bool:
    return _apart(old, new) < AGREE


def _apart(old: NDArray[Any], new: NDArray[Any]) -> float:
    """The largest difference of two movements, in relation to the larger one."""
    scale = max(_largest(old), _largest(new))
    return _largest(old - new) / scale if scale else 0.0


def _largest(values: NDArray[Any]) -> float:
    return float(np.abs(values).max(initial=0.0))
