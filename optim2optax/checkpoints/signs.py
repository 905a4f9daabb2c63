"""Which traces of optax have the opposite sign of the legacy momentum.

The trace of LARS does: it is behind the learning rate, and so accumulates updates, not gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from codemods.optimizers.base import RATE
from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.correspondence import STEP, is_trace, nodes_of, places_of
from optim2optax.checkpoints.state_dict_places import Path, key_of, quoted

LARGEST = 2
"""The size of each axis of the parameters on which a transformation is tried.

Small ones show the sign as well as large ones, unless the transformation depends on the shape.
"""


def descending(tx: Any, params: Any, opt_state: Any) -> set[Path]:
    """The places of the states of traces that accumulate updates, not gradients.

    The effect of a trace on the updates shows that, or, where a learning rate of zero hides it, the
    effect of a gradient on the trace.

    Raises:
      CheckpointError: if neither shows it, or the transformation fails.
    """
    wanted = [*nodes_of(opt_state, is_trace)]
    if not wanted:
        return set()
    try:
        signs = _signs(tx, params, lambda size: min(size, LARGEST))
    except Exception:  # noqa: BLE001 - the program's own, which may need its own shapes
        signs = {}
    if signs.keys() != {*wanted}:
        signs = _of_whole_parameters(tx, params, wanted)
    unknown = [path for path in wanted if not signs.get(path)]
    if unknown:
        raise _unknown_sign(
            unknown[0], "it has no effect, and gradients have none on it"
        )
    return {path for path, sign in signs.items() if sign > 0}


def _of_whole_parameters(tx: Any, params: Any, wanted: list[Path]) -> dict[Path, int]:
    try:
        return _signs(tx, params, lambda size: size)
    except jax.errors.UnexpectedTracerError:
        raise
    except Exception as error:
        raise _unknown_sign(
            wanted[0], f"a step fails with {type(error).__name__}"
        ) from error


def _unknown_sign(state: Path, why: str) -> CheckpointError:
    place = quoted(("opt_state", *state, "trace"))
    return CheckpointError(
        f"{place} of the new state may follow the way up or down, which cannot be told: {why}."
    )


def _signs(tx: Any, params: Any, size: Callable[[int], int]) -> dict[Path, int]:
    """1 for each trace that accumulates updates, -1 for one of gradients, 0 if it is unknown."""

    def ones_like(leaf: Any) -> Any:
        dtype = jax.dtypes.result_type(leaf)
        if not jnp.issubdtype(dtype, jnp.inexact):
            # integers have no gradient
            dtype = np.dtype(np.float32)
        return np.ones([*map(size, np.shape(leaf))], dtype)

    ones = jax.tree_util.tree_map(ones_like, params)
    begun = _begun(tx.init(ones))
    _, stepped = tx.update(ones, begun, ones)
    signs: dict[Path, int] = {}
    for path, node in nodes_of(stepped, is_trace).items():
        # all gradients are 1, so that a trace of gradients grows
        by_effect = _sign(_effect(tx, ones, begun, path))
        signs[path] = by_effect or -_sign(node)
    return signs


def _effect(tx: Any, ones: Any, begun: Any, changing: Path) -> Any:
    """The change of the updates with a trace, which is a directional derivative."""

    def updates_with(trace: Any) -> Any:
        def changed(keys: tuple[Any, ...], node: Any) -> Any:
            return trace if tuple(map(key_of, keys)) == changing else node

        state = jax.tree_util.tree_map_with_path(changed, begun, is_leaf=is_trace)
        updates, _ = tx.update(ones, state, ones)
        return updates

    trace = nodes_of(begun, is_trace)[changing]
    direction = jax.tree_util.tree_map(np.ones_like, trace)
    _, effect = jax.jvp(updates_with, (trace,), (direction,))
    return effect


def _begun(opt_state: Any) -> Any:
    """A state after the first step, with a learning rate of 1 where that is injected.

    At step 0 of a warm-up, the learning rate is 0, and no trace has an effect.
    """
    changed: set[Path] = set()
    for place in places_of(opt_state):
        # InjectHyperparamsState(count=…, hyperparams={"learning_rate": …})
        is_rate = place.source is None and place.path[-1] == RATE
        if is_rate or place.source == STEP:
            changed.add(place.path)

    def leaf_begun(keys: tuple[Any, ...], leaf: Any) -> Any:
        path = tuple(map(key_of, keys))
        return np.ones_like(leaf) if path in changed else leaf

    return jax.tree_util.tree_map_with_path(leaf_begun, opt_state)


def _sign(tree: Any) -> int:
    leaf_sums = [np.sum(leaf) for leaf in jax.tree_util.tree_leaves(tree)]
    total = sum(float(np.real(found)) for found in leaf_sums)
    return int(total > 0) - int(total < 0)
