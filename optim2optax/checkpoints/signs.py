"""Which traces of optax follow the way down, where legacy had the way up.

That of LARS does, which is behind the learning rate.
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
from optim2optax.checkpoints.places import Path, key_of, said

LARGEST = 2
"""Parameters of so many elements along each axis tell as much as larger ones, unless the transformation asks for the shape."""


def descending(tx: Any, params: Any, opt_state: Any) -> set[Path]:
    """The places of the states of traces that follow the way down.

    How a trace changes the updates tells, or, where a learning rate of zero lets nothing through, how a gradient changes it.

    Raises:
      CheckpointError: if neither tells, or the transformation fails.
    """
    wanted = [path for path, node in nodes_of(opt_state) if is_trace(node)]
    if not wanted:
        return set()
    try:
        signs = _signs(tx, params, lambda size: min(size, LARGEST))
    except Exception:  # noqa: BLE001 - whatever it is, it is the program's, which may want its own shapes
        signs = {}
    if signs.keys() != {*wanted}:
        signs = _of_whole_parameters(tx, params, wanted)
    unknown = [path for path in wanted if not signs.get(path)]
    if unknown:
        raise _untold(unknown[0], "it has no effect, and gradients have none on it")
    return {path for path, sign in signs.items() if sign > 0}


def _of_whole_parameters(tx: Any, params: Any, wanted: list[Path]) -> dict[Path, int]:
    try:
        return _signs(tx, params, lambda size: size)
    except jax.errors.UnexpectedTracerError:
        raise
    except Exception as error:
        raise _untold(wanted[0], f"a step fails with {type(error).__name__}") from error


def _untold(state: Path, why: str) -> CheckpointError:
    place = said(("opt_state", *state, "trace"))
    return CheckpointError(
        f"{place} of the new state may follow the way up or down, which cannot be told: {why}."
    )


def _signs(tx: Any, params: Any, size: Callable[[int], int]) -> dict[Path, int]:
    """1 for each trace that follows the way down, -1 for one that follows the way up, 0 where it cannot be told."""

    def one(leaf: Any) -> Any:
        dtype = jax.dtypes.result_type(leaf)
        return np.ones(
            [*map(size, np.shape(leaf))],
            dtype if jnp.issubdtype(dtype, jnp.inexact) else np.float32,
        )

    ones = jax.tree_util.tree_map(one, params)
    begun = _begun(tx.init(ones))
    _, stepped = tx.update(ones, begun, ones)
    traces = [(path, node) for path, node in nodes_of(stepped) if is_trace(node)]
    return {path: _sign(_effect(tx, ones, begun, path)) or -_sign(node) for path, node in traces}


def _effect(tx: Any, ones: Any, begun: Any, changing: Path) -> Any:
    """How the updates change with a trace."""
    nodes = nodes_of(begun)
    structure = jax.tree_util.tree_structure(begun, is_leaf=is_trace)

    def updates(trace: Any) -> Any:
        changed = [trace if path == changing else node for path, node in nodes]
        return tx.update(ones, jax.tree_util.tree_unflatten(structure, changed), ones)[0]

    trace = dict(nodes)[changing]
    return jax.jvp(updates, (trace,), (jax.tree_util.tree_map(np.ones_like, trace),))[1]


def _begun(opt_state: Any) -> Any:
    """A state behind the first step of a warm-up, and with a rate where that is injected."""
    places = places_of(opt_state)
    rates = {place.path for place in places if place.source is None and place.path[-1] == RATE}
    counts = {place.path for place in places if place.source == STEP}

    def leaf_begun(keys: tuple[Any, ...], leaf: Any) -> Any:
        return np.ones_like(leaf) if tuple(map(key_of, keys)) in rates | counts else leaf

    return jax.tree_util.tree_map_with_path(leaf_begun, opt_state)


def _sign(tree: Any) -> int:
    total = sum(float(np.real(np.sum(leaf))) for leaf in jax.tree_util.tree_leaves(tree))
    return int(total > 0) - int(total < 0)
