"""What is known of the run of a scenario beside the values that it yields."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.judging.exercised import Evidence
from optim2optax.parity.judging.leaves import PyTree, leaves_by_path
from optim2optax.parity.judging.movement import gradients_of_rounding
from optim2optax.parity.replaying.replay import Step
from optim2optax.parity.scenario.tape import Tape, distinct


def evidence_of(old: Tape, new: Tape, values: Sequence[PyTree]) -> Evidence:
    """The evidence of a run, from the tapes of both sides and the values that the old side yielded.

    The values count, too, as not every step is the method of an optimizer.
    """
    # A baseline has no tape of the old side, so the new one has to do.
    recorded = list(old.recorded().values()) or list(new.recorded().values())
    counts = [len(distinct(steps)) for steps in recorded]
    taken = max(counts, default=len(new.by_hand))
    moved = any(map(_moves, itertools.chain(*recorded))) if recorded else None
    return Evidence(
        taken=max(taken, _changes(values)),
        moved=moved,
        rounding=_rounding(old, new),
        remarks=[*_rate_that_stays(recorded)],
    )


def _changes(values: Sequence[PyTree]) -> int:
    """How many values differ from those ahead of them."""
    rows = map(leaves_by_path, values)
    return sum(_is_changed(before, after) for before, after in itertools.pairwise(rows))


def _is_changed(
    before: dict[str, NDArray[Any]], after: dict[str, NDArray[Any]]
) -> bool:
    common = before.keys() & after.keys()
    return any(before[leaf].tobytes() != after[leaf].tobytes() for leaf in common)


def _rounding(old: Tape, new: Tape) -> dict[str, bool]:
    """Whether the gradients of each parameter are rounding alone.

    They are, if they are so on both sides, in all optimizers with a parameter of that name.
    """
    found: dict[str, bool] = {}
    others = new.recorded()
    for kind, steps in old.recorded().items():
        sizes = _largest_gradients([*steps, *others.get(kind, ())])
        for leaf, is_rounding in gradients_of_rounding(sizes).items():
            found[leaf] = found.get(leaf, True) and is_rounding
    return found


def _largest_gradients(steps: Sequence[Step]) -> dict[str, float]:
    """The largest finite gradient of each leaf."""
    sizes: dict[str, float] = {}
    for step in steps:
        for leaf, values in leaves_by_path(step.gradients).items():
            # One infinite gradient would make all others look like rounding.
            finite = values[np.isfinite(values)]
            magnitudes = np.abs(finite).astype(np.float64)
            largest = float(magnitudes.max(initial=0.0))
            sizes[leaf] = max(largest, sizes.get(leaf, 0.0))
    return sizes


def _moves(step: Step) -> bool:
    before = jax.tree_util.tree_leaves(step.before)
    after = jax.tree_util.tree_leaves(step.after)
    pairs = zip(before, after, strict=True)
    # NaN equals NaN here: a loss that has diverged moves nothing any more.
    return any(not np.array_equal(old, new, equal_nan=True) for old, new in pairs)


def _rate_that_stays(recorded: Sequence[Sequence[Step]]) -> Iterator[str]:
    """The remark on a learning rate that is given at each step, and is always the same."""
    # optimizer.apply_gradient(grads, learning_rate=1e-3)
    for steps in recorded:
        rates = {step.rate for step in steps if not math.isnan(step.rate)}
        if len(rates) == 1:
            yield (
                f"The learning rate is given at each step and was always {rates.pop():g}, "
                "so no change of it is proven."
            )
            return
