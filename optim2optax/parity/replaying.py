"""Gradients of an old optimizer, replayed into a new transformation; and states that correspond.

The open loops of scenarios and commands share this. It knows objects in memory, and no files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization
from numpy.typing import NDArray

from optim2optax.checkpoints.carrying import carried, carried_parts
from optim2optax.checkpoints.state_dict_places import Path, leaves
from optim2optax.parity.judging.leaves import PyTree


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


def state_dict(node: PyTree) -> dict[str, Any]:
    """The state dict of an optimizer.

    It is a legacy optimizer, a train state, or `(params, opt_state)` with or without a step.
    """
    parts = _parts(node) if type(node) is tuple else node
    found: dict[str, Any] = serialization.to_state_dict(parts)
    return found


def _parts(node: tuple[PyTree, ...]) -> dict[str, PyTree]:
    # params, opt_state = step(params, opt_state, batch)
    return dict(zip(("params", "opt_state", "step"), node, strict=False))


def correspondence(old: PyTree, new: PyTree) -> list[tuple[Path, Path, int]]:
    """The places of the new state that correspond to places of the old one.

    Each comes with the place in the old state and the sign. An old state whose leaves are the
    numbers of their places is converted as a checkpoint: the new leaves then show where they are
    from. Nothing corresponds where a checkpoint would not be converted.
    """
    # Places are numbered from 1, as a moment may change its sign and 0 has none.
    places = [path for path, leaf in leaves(state_dict(old)) if leaf is not None]
    numbers = {path: number for number, path in enumerate(places, 1)}
    numbered = _numbered(state_dict(old), numbers)
    blank = jax.tree_util.tree_map(_unknown, new)
    try:
        if type(new) is tuple:
            result = carried_parts(numbered, _parts(blank))
        else:
            result = carried(numbered, blank)
    except Exception:  # noqa: BLE001 - a user's transformation may refuse the probe for its sign
        return []
    compared = _compared_fields(new)
    found: list[tuple[Path, Path, int]] = []
    for path, leaf in leaves(result):
        number = _first(leaf) if path[0] in compared else math.nan
        # A leaf that is not from the old state has stayed NaN.
        if math.isfinite(number):
            source = places[abs(int(number)) - 1]
            sign = 1 if number > 0 else -1
            found.append((path, source, sign))
    return found


def _unknown(leaf: Any) -> NDArray[np.float64]:
    return np.full(np.shape(leaf), np.nan)


def _first(leaf: Any) -> float:
    """The first element of a leaf; NaN if there is none."""
    values = np.asarray(leaf, np.float64).ravel()
    return float(values[0]) if values.size else math.nan


def _compared_fields(new: PyTree) -> tuple[str, ...]:
    """The fields of a new optimizer whose leaves are compared."""
    transformation = getattr(new, "tx", None)
    # A definition that keeps its interface counts in its state, which the program may replace.
    if hasattr(transformation, "update_hyper_params"):
        return ("opt_state",)
    return ("opt_state", "step")


def _numbered(tree: Any, numbers: Mapping[Path, int], path: Path = ()) -> Any:
    """A state dict in which each leaf is full of the number of its place."""
    if isinstance(tree, Mapping):
        found: dict[Any, Any] = {}
        for key, value in tree.items():
            found[key] = _numbered(value, numbers, (*path, key))
        return found
    if tree is None:
        return None
    return np.full(np.shape(tree), float(numbers[path]))


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
