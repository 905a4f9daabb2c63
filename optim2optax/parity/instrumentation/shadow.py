"""The old side's own updates, computed anew in float64 where its program computes in float32.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from optim2optax.parity.recording.inputs import as_tree, read_inputs, why_not
from optim2optax.parity.recording.methods import unrecorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from optim2optax.parity.recording.inputs import GivenStep
    from optim2optax.parity.recording.recorder import Recorder


def shadow(folder: Path, recorder: Recorder) -> None:
    """Take each recorded step of this process's legacy optimizers once more, and write the results.

    Args:
        folder: of the records of this side.
        recorder: the recorder of this process. JAX has to compute in float64 by now.
    """
    lost, found = read_inputs(folder)
    for kind, optimizers in recorder.met.items():
        steps = found[kind].steps if kind in found else []
        # The new side says why it has no replays.
        if why_not(lost, steps, len(optimizers)):
            continue
        optimizer = next(iter(optimizers.values()))
        replays = _replayed(optimizer, steps, recorder)
        for step, moved in zip(steps, replays):  # noqa: B905 - Python 3.8 has no `strict`
            parts = recorder.part(moved)
            after = {part: np.asarray(values) for part, values in parts.items()}
            recorder.writer.write({"replayed": step.number}, {"after": after})


def _replayed(
    optimizer: Any, steps: Sequence[GivenStep], recorder: Recorder
) -> Iterator[Any]:
    """The parameters after each step, from the recorded ones ahead of it and the state so far."""
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
        before = as_tree(step.before, optimizer.target, names, wide=True)
        gradients = as_tree(step.gradients, optimizer.target, names, wide=True)
        with unrecorded():
            if state is None:
                state = definition.init_state(before)
            moved, state = update(before, gradients, step.rate, state)
        yield moved
