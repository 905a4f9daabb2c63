"""The old side's own updates, computed anew in float64 where its program computes in float32."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax

from optim2optax.parity.recording.inputs import as_trees, read_inputs, why_not
from optim2optax.parity.recording.methods import unrecorded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from optim2optax.parity.recording.inputs import Step
    from optim2optax.parity.recording.recorder import Recorder


def shadow(folder: Path, recorder: Recorder) -> None:
    """Take each recorded step of this process's legacy optimizers once more, and write the results.

    The records of this side are in `folder`. JAX has to compute in float64 by now.
    """
    lost, found = read_inputs(folder)
    for kind, optimizers in recorder.met.items():
        steps = found[kind].steps if kind in found else []
        # The new side says why it has no replays.
        if not why_not(lost, steps, len(optimizers)):
            with unrecorded():
                _replay(next(iter(optimizers.values())), steps, recorder)


def _replay(optimizer: Any, steps: Sequence[Step], recorder: Recorder) -> None:
    """Take steps from the recorded parameters ahead of each, and from the state so far."""
    definition = optimizer.optimizer_def
    # A replicated optimizer averages gradients over devices; the recorded ones are averaged.
    if hasattr(definition, "axis_name"):
        definition = definition.optimizer_def
    names = list(recorder.leaves(optimizer.target))
    is_given_rate = not math.isnan(steps[0].rate)

    @jax.jit
    def update(before: Any, gradients: Any, rate: Any, state: Any) -> Any:
        # optimizer.apply_gradient(grads, learning_rate=rate)
        overrides = {"learning_rate": rate} if is_given_rate else {}
        hyper_params = definition.update_hyper_params(**overrides)
        return definition.apply_gradient(hyper_params, before, state, gradients)

    state = None
    for step in steps:
        given = as_trees(step, optimizer.target, names, wide=True)
        if state is None:
            state = definition.init_state(given.before)
        moved, state = update(given.before, given.gradients, given.rate, state)
        recorder.replayed(given.number, moved)
