"""Gradients of an old optimizer, replayed into a new transformation; and states that correspond.

The open loops of scenarios and commands share this. It knows objects in memory, and no files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization

from optim2optax.checkpoints.carrying import Carrying, parts_of, put
from optim2optax.checkpoints.state_dict_places import Path, key_of, leaves
from optim2optax.parity.judging.movement import PyTree
from optim2optax.parity.recording.inputs import Step


def replayed(
    transformation: optax.GradientTransformation, steps: Sequence[Step]
) -> Iterator[PyTree]:
    """The parameters after each step, from the recorded ones ahead of it and the state so far."""
    update = jax.jit(stepping(transformation, not math.isnan(steps[0].rate)))
    state: Any = jax.jit(transformation.init)(steps[0].before)
    for step in steps:
        moved, state = update(step.before, state, step.gradients, step.rate)
        yield moved


def stepping(
    transformation: optax.GradientTransformation, gives_rate: bool
) -> Callable[[PyTree, Any, PyTree, Any], tuple[PyTree, Any]]:
    """A step of a transformation: the new parameters and state.

    It is a function of parameters, state, gradients and the learning rate, which becomes the
    injected one. A definition that keeps its interface takes it at each update.
    """
    takes_rate = gives_rate and hasattr(transformation, "update_hyper_params")

    def step(
        params: PyTree, state: Any, gradients: PyTree, rate: Any
    ) -> tuple[PyTree, Any]:
        if rate is not None:
            state = with_rate(state, rate)
        overrides = {"learning_rate": rate} if takes_rate else {}
        updates, state = transformation.update(gradients, state, params, **overrides)
        return optax.apply_updates(params, updates), state

    return step


def state_dict(node: PyTree) -> dict[str, Any]:
    """The state dict of an optimizer.

    It is a legacy optimizer, a train state, or `(params, opt_state)` with or without a step.
    """
    parts = parts_of(node) if type(node) is tuple else node
    found: dict[str, Any] = serialization.to_state_dict(parts)
    return found


def correspondence(old: PyTree, new: PyTree) -> list[tuple[Path, Path, int]]:
    """The places of the new state that correspond to places of the old one.

    Each comes with the place in the old state and the sign. Nothing corresponds where a checkpoint
    would not be converted.
    """
    content = state_dict(old)
    shapes = {
        path: None if leaf is None else np.broadcast_to(0.0, np.shape(leaf))
        for path, leaf in leaves(content)
    }
    blank = jax.tree_util.tree_map(lambda leaf: np.zeros(np.shape(leaf)), new)
    transformation = getattr(new, "tx", None)
    try:
        carrying = Carrying(put(shapes, content), parts_of(blank), transformation)
        carrying.carried()
    except Exception:  # noqa: BLE001 - a user's transformation may refuse the probe for its sign
        return []
    compared = {"opt_state"}
    # A definition that keeps its interface counts in its state, which the program may replace.
    if not hasattr(transformation, "update_hyper_params"):
        compared.add("step")
    return [found for found in carrying.correspondence() if found[0][0] in compared]


def with_rate(state: Any, rate: Any) -> Any:
    """A state in which each injected learning rate is `rate`, or stays as it is if that is NaN.

    A moment of a parameter that is called `learning_rate` is none. Without
    `optax.inject_hyperparams` a state stays as it is.
    """

    def new(path: tuple[Any, ...], leaf: Any) -> Any:
        # state.hyperparams["learning_rate"]
        names = [*map(key_of, path[-2:])]
        if names != ["hyperparams", "learning_rate"]:
            return leaf
        is_given = ~jnp.isnan(rate)
        # `rate` may be traced, so that Python cannot ask.
        return jnp.where(is_given, rate, leaf)

    return jax.tree_util.tree_map_with_path(new, state)
