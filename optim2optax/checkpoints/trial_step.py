"""One step of a program before and after its migration, from one checkpoint and gradient."""

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
from optim2optax.checkpoints.correspondence import leaves_of, nodes_of
from optim2optax.checkpoints.files import read
from optim2optax.checkpoints.loading import Successor, successors
from optim2optax.checkpoints.state_dict_places import Path, quoted
from optim2optax.legacy import legacy_flax, load_module
from optim2optax.precision import precise

GATE = 1e-6
"""The tolerance, relative to the movement of each leaf.

Other optimizers differ by far more, and rounded constants by less.
"""


def compare_steps(
    source: FilePath, before: str, state: Any, transformations: Mapping[Path, Any]
) -> None:
    """Compare a step of the real `flax.optim` from a checkpoint with one of the migrated program.

    Args:
      source: the checkpoint.
      before: `FILE:FUNCTION`, of the program before its migration: gives its fresh state.
      state: the state of the migrated program, loaded from the checkpoint.
      transformations: the transformations outside of its train states, by their places.

    Raises:
      CheckpointError: if a parameter differs, or one side cannot take the step.
    """
    # (params, opt_state, tx) without a train state
    found = successors(state, transformations, transformations)
    new = {one.place: one for one in found}
    try:
        with legacy_flax() as flax, precise():
            for place, optimizer in _optimizers(flax, source, before).items():
                # TrainState(optimizer=…) of the program has become a train state itself
                _compare(place, optimizer, new.get(place) or new[place[:-1]])
    except CheckpointError:
        raise
    except (Exception, SystemExit) as error:
        raise CheckpointError(
            f"a step before and after cannot be compared ({type(error).__name__}: {error})."
        ) from error


def _optimizers(flax: Any, source: FilePath, before: str) -> dict[Path, Any]:
    """The legacy optimizers of a checkpoint, by their places."""
    file, _, function = before.rpartition(":")
    fresh = getattr(load_module(FilePath(file), "before", legacy=True), function)()
    state = serialization.from_state_dict(fresh, read(source))
    return nodes_of(state, lambda node: isinstance(node, flax.optim.Optimizer))


def _compare(place: Path, optimizer: Any, successor: Successor) -> None:
    """Let both sides of one optimizer take a step in float64, and compare the params."""
    optimizer = _wide(optimizer)
    params = _wide(successor.like["params"])
    opt_state = _wide(successor.like["opt_state"])
    grads = _gradients(serialization.to_state_dict(params))
    # each side has its own containers: one a FrozenDict, perhaps, and the other a dict
    old_grads = serialization.from_state_dict(optimizer.target, grads)
    old = optimizer.apply_gradient(old_grads).target
    new_grads = serialization.from_state_dict(params, grads)
    updates, _ = successor.tx.update(new_grads, opt_state, params)
    new = optax.apply_updates(params, updates)
    start = dict(leaves_of(params))
    found = dict(leaves_of(new))
    for path, leaf in leaves_of(old):
        difference = np.max(np.abs(found[path] - leaf))
        movement = np.max(np.abs(leaf - start[path]))
        if not difference <= GATE * movement:  # false for NaN, too
            now = np.max(np.abs(found[path] - start[path]))
            raise CheckpointError(
                f"one step moves {quoted((*place, 'target', *path))} by {movement:.3g} in the old "
                f"program and by {now:.3g} in the new one, which then differ by {difference:.3g}. "
                "Is it the same optimizer, with the same numbers?"
            )


def _wide(tree: Any) -> Any:
    """A tree with its numbers in float64."""

    def wide(leaf: Any) -> Any:
        if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.asarray(leaf, jnp.float64)
        return jnp.asarray(leaf)

    return jax.tree_util.tree_map(wide, tree)


def _gradients(params: Any) -> Any:
    """Gradients of several signs and sizes, always the same."""
    random = np.random.default_rng(0)

    def gradient(leaf: Any) -> Any:
        return jnp.asarray(random.normal(size=np.shape(leaf)))

    return jax.tree_util.tree_map(gradient, params)
