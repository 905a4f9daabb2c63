"""A scenario in open loop: gradients of the old side, replayed into transformations of the new one.

The closed loop compares the training loops, in which rounding feeds back. The open loop compares
the optimizers alone, on the very parameters and gradients of the user's own run, by the much
narrower gate of a replay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import optax
from numpy.typing import NDArray

from optim2optax.parity.judging.comparison import Comparison
from optim2optax.parity.judging.judge import judge
from optim2optax.parity.judging.leaves import leaves_by_path
from optim2optax.parity.replaying.replay import Step, replayed
from optim2optax.parity.scenario.tape import Tape, distinct


def compare_open_loop(old: Tape, new: Tape) -> Comparison | None:
    """Replay the steps of the old side into the transformations of the new side.

    Returns:
        The comparison of the optimizer that departs most. It is None if the code does not allow
        it: if several optimizers have parameters of one kind, their counts do not go up by one
        from 0, or their states or hyperparameters were set by hand.
    """
    if not old.complete:
        return None
    compared: list[Comparison] = []
    for kind, recorded in old.recorded().items():
        transformations = list(new.transformations.get(kind, {}).values())
        # A GAN may have two optimizers of one kind; which of them took a step is not known.
        if len(transformations) != 1:
            return None
        steps = sorted(distinct(recorded), key=lambda step: step.count)
        counts = [step.count for step in steps]
        # A run that goes on from a checkpoint begins with a later step.
        if counts != list(range(len(steps))):
            return None
        compared.append(_replay(transformations[0], steps))
    return max(compared, key=lambda comparison: comparison.error, default=None)


def _replay(
    transformation: optax.GradientTransformation, steps: list[Step]
) -> Comparison:
    """Judge the steps of an old optimizer and their replay."""
    new = [leaves_by_path(moved) for moved in replayed(transformation, steps)]
    old = [leaves_by_path(step.after) for step in steps]
    before: dict[str, NDArray[Any]] = {}
    after: dict[str, NDArray[Any]] = {}
    for leaf in new[0]:
        before[leaf] = np.stack([values[leaf] for values in old])
        after[leaf] = np.stack([values[leaf] for values in new])
    start = leaves_by_path(steps[0].before)
    return judge(before, after, start)
