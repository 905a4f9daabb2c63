"""Steps of an old optimizer, replayed into a gradient transformation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import optax

from optim2optax.parity.judging.leaves import PyTree
from optim2optax.parity.replaying.rates import with_rate


@dataclass(frozen=True)
class Step:
    """A step of an old optimizer: its count, its inputs, and the parameters after it.

    `rate` is NaN if none was given.
    """

    count: int
    before: PyTree
    gradients: PyTree
    rate: float
    after: PyTree


def replayed(
    transformation: optax.GradientTransformation, steps: Sequence[Step]
) -> Iterator[PyTree]:
    """The parameters after each step, from the recorded ones ahead of it and the state so far."""
    # A definition that keeps its interface takes hyperparameters at each update.
    keeps_interface = hasattr(transformation, "update_hyper_params")
    is_given_rate = keeps_interface and not math.isnan(steps[0].rate)

    @jax.jit
    def update(
        before: PyTree, gradients: PyTree, rate: Any, state: Any
    ) -> tuple[PyTree, Any]:
        state = with_rate(state, rate)
        overrides = {"learning_rate": rate} if is_given_rate else {}
        updates, state = transformation.update(gradients, state, before, **overrides)
        return optax.apply_updates(before, updates), state

    state: Any = jax.jit(transformation.init)(steps[0].before)
    for step in steps:
        moved, state = update(step.before, step.gradients, step.rate, state)
        yield moved
