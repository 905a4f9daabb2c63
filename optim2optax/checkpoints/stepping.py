"""One step of a program as it was and as it is, from the same checkpoint and with the same gradient."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.files import read
from optim2optax.checkpoints.flax_msgpack import as_numpy
from optim2optax.checkpoints.loading import parts_at, train_states
from optim2optax.checkpoints.places import Path, key_of, leaves, said
from optim2optax.parity.legacy import legacy_flax, load_module
from optim2optax.parity.precision import precise

GATE = 1e-6
"""Of each leaf's movement. Other functions differ by far more, and rounded constants by less."""

Parts = tuple[Any, Any, Any]
"""A transformation, parameters, and the state of optax."""


def compare_steps(
    source: FilePath, before: str, state: Any, transformations: Mapping[Path, Any]
) -> None:
    """Let the real `flax.optim` take a step from a checkpoint, and the migrated program one from what it was converted to.

    Args:
      source: the checkpoint.
      before: `FILE:FUNCTION`, of the program before its migration: gives its fresh state.
      state: of the migrated program, loaded from the checkpoint.
      transformations: those outside of its train states, by their places.

    Raises:
      CheckpointError: if a parameter differs, or one side cannot take the step.
    """
    parts = _parts(state, transformations)
    try:
        with legacy_flax() as flax, precise():
            for place, optimizer in _optimizers(flax, source, before).items():
                _compare(place, optimizer, parts.get(place) or parts[place[:-1]])
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"a step before and after cannot be compared ({type(error).__name__}: {error})."
        ) from error


def _parts(state: Any, transformations: Mapping[Path, Any]) -> dict[Path, Parts]:
    """What can take a step, by its place."""
    found: dict[Path, Parts] = {
        place: (one.tx, one.params, one.opt_state) for place, one in train_states(state)
    }
    for place, tx in transformations.items():
        like = parts_at(state, place)
        found[place] = (tx, like["params"], like["opt_state"])
    return found


def _optimizers(flax: Any, source: FilePath, before: str) -> dict[Path, Any]:
    """The legacy optimizers of a checkpoint, by their places."""
    file, _, function = before.rpartition(":")
    fresh = getattr(load_module(FilePath(file), "before", legacy=True), function)()
    tree = jax.tree_util.tree_map(as_numpy, read(source), is_leaf=lambda node: node is None)
    nodes, _ = jax.tree_util.tree_flatten_with_path(
        serialization.from_state_dict(fresh, tree),
        is_leaf=lambda node: isinstance(node, flax.optim.Optimizer),
    )
    return {
        tuple(map(key_of, keys)): node
        for keys, node in nodes
        if isinstance(node, flax.optim.Optimizer)
    }


def _compare(place: Path, optimizer: Any, parts: Parts) -> None:
    tx, params, opt_state = parts
    optimizer, params, opt_state = _wide(optimizer), _wide(params), _wide(opt_state)
    grads = _gradients(serialization.to_state_dict(params))
    old = optimizer.apply_gradient(serialization.from_state_dict(optimizer.target, grads)).target
    updates, _ = tx.update(serialization.from_state_dict(params, grads), opt_state, params)
    new = optax.apply_updates(params, updates)
    start, wanted, found = (
        dict(leaves(serialization.to_state_dict(tree))) for tree in (params, old, new)
    )
    for path, leaf in wanted.items():
        difference, movement = (
            np.max(np.abs(found[path] - leaf)),
            np.max(np.abs(leaf - start[path])),
        )
        if not difference <= GATE * movement:
            raise CheckpointError(
                f"{said((*place, 'target', *path))} steps otherwise than before: by {movement:.3g}, and now differs by "
                f"{difference:.3g}. Is it the same optimizer, with the same numbers?"
            )


def _wide(tree: Any) -> Any:
    """A tree with its numbers in float64."""

    def wide(leaf: Any) -> Any:
        is_float = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.asarray(leaf, jnp.float64) if is_float else jnp.asarray(leaf)

    return jax.tree_util.tree_map(wide, tree)


def _gradients(params: Any) -> Any:
    """Gradients of several signs and sizes, always the same."""
    random = np.random.default_rng(0)
    return jax.tree_util.tree_map(
        lambda leaf: jnp.asarray(random.normal(size=np.shape(leaf))), params
    )
