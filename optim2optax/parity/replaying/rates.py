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
        last_two = path[-2:]
        names = [_name(entry) for entry in last_two]
        if names != ["hyperparams", "learning_rate"]:
            return leaf
        is_given = ~jnp.isnan(rate)
        # `rate` may be traced, so that Python cannot ask.
        return jnp.where(is_given, rate, leaf)

    return jax.tree_util.tree_map_with_path(new, state)


def _name(entry: Any) -> Any:
    """The name of a field in a path, or the key of a dict."""
    if hasattr(entry, "name"):
        return entry.name
    return getattr(entry, "key", None)
