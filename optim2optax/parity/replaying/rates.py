"""The learning rates that a transformation keeps in its state."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def with_rate(state: Any, rate: Any) -> Any:
    """A state in which each injected learning rate is `rate`, or stays as it is if that is NaN.

    A moment of a parameter that is called `learning_rate` is none. Without
    `optax.inject_hyperparams` a state stays as it is.
    """

    def new(path: tuple[Any, ...], leaf: Any) -> Any:
        # state.hyperparams["learning_rate"]
        names = [getattr(entry, "name", getattr(entry, "key", None)) for entry in path[-2:]]
        if names != ["hyperparams", "learning_rate"]:
            return leaf
        return jnp.where(jnp.isnan(rate), leaf, rate)

    return jax.tree_util.tree_map_with_path(new, state)
