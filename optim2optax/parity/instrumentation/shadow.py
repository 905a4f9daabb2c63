"""The old side's own updates, computed anew in float64 where its program computes in float32."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import jax

from optim2optax.parity.recording.inputs import as_trees, read_inputs, why_not
from optim2optax.parity.recording.methods import unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
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
            optimizer = next(iter(optimizers.values()))
            take = partial(_replayed, optimizer)
            write_replays(recorder, optimizer.target, steps, True, take)


def write_replays(
    recorder: Recorder,
    params: Any,
    steps: Sequence[Step],
    wide: bool,
    replayed: Callable[[Sequence[Step]], Iterator[Any]],
) -> None:
    """Write the parameters after each step that is replayed into an optimizer of such parameters.

    The steps are the first ones. With `wide`, arrays in float32 become float64.
    """
    names = list(recorder.leaves(params))
    taken = [as_trees(step, params, names, wide) for step in steps]
    # An update is no step of the program: `optax.apply_updates` is called.
    with unrecorded():
        for number, moved in enumerate(replayed(taken)):
            recorder.replayed(number, moved)


def _replayed(optimizer: Any, steps: Sequence[Step]) -> Iterator[Any]:
    """The parameters after each step, from the recorded ones ahead of it and the state so far."""
    definition = optimizer.optimizer_def
    # A replicated optimizer averages gradients over devices; the recorded ones are averaged.
    if hasattr(definition, "axis_name"):
        definition = definition.optimizer_def
    is_given_rate = not math.isnan(steps[0].rate)

    @jax.jit
    def update(before: Any, gradients: Any, rate: Any, state: Any) -> Any:
        # optimizer.apply_gradient(grads, learning_rate=rate)
        overrides = {"learning_rate": rate} if is_given_rate else {}
        hyper_params = definition.update_hyper_params(**overrides)
        return definition.apply_gradient(hyper_params, before, state, gradients)

    state = definition.init_state(steps[0].before)
    for step in steps:
        moved, state = update(step.before, step.gradients, step.rate, state)
        yield moved
