"""The learning rates that are given to both sides, one for each step."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from codemods.model import EmittedOptimizer

INJECTED = "optax.inject_hyperparams"
RATE = 0.021
RATE_DECAY = 0.97

PERIOD = 150
"""The steps after which the learning rates repeat, so that parameters still move after many."""


def sets_rate(emitted: EmittedOptimizer) -> bool:
    """Whether the learning rate is set at each step, of the optimizer or of one within it."""
    if emitted.injected or emitted.schedule:
        return True
    # optax.multi_transform({"kernels": optax.inject_hyperparams(optax.adam)(…), …}, labels)
    return INJECTED in emitted.optax_expression


def rate(step: int) -> float:
    """The learning rate of both sides at a step, which counts from 0."""
    return RATE * RATE_DECAY ** (step % PERIOD)


def scheduled_rate(count: Any) -> Any:
    """The same rates as a function of a traced step."""
    rates = jnp.asarray([rate(step) for step in range(PERIOD)])
    return rates[count % PERIOD]
