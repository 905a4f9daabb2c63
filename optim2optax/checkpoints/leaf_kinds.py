"""Kinds of leaves: numbers stay numbers, texts texts, and arrays of optimizers their kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import jax.numpy as jnp

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.state_dict_places import Path, at, leaves, quoted

KINDS = {
    "bool": jnp.bool_,
    "int": jnp.integer,
    "float": jnp.floating,
    "complex": jnp.complexfloating,
}


def refuse_other_kinds(
    new: Mapping[str, Any] | Any, fresh: Any, carried: Collection[Path]
) -> None:
    """Refuse a state dict in which a leaf is of another kind than in the fresh one.

    Args:
      new: the state dict with the values of a checkpoint.
      fresh: the state dict as the program makes it.
      carried: the places that are carried over from legacy optimizers, where each array must have
        the same kind of numbers as in the program.

    Raises:
      CheckpointError: if there is such a leaf.
    """
    for path, value in leaves(new):
        like = at(fresh, path)
        if like is None:
            continue
        is_carried = any(path[: len(place)] == place for place in carried)
        kind = _kind(value, is_carried)
        wanted = _kind(like, is_carried)
        if kind != wanted:
            raise CheckpointError(
                f"{quoted(path)} is {kind} in the checkpoint, and {wanted} in the new state."
            )


def _kind(leaf: Any, is_carried: bool) -> str:
    """The kind of a leaf, in words. Beside optimizers, all numbers are of one kind."""
    name = _name(leaf)
    if name in KINDS and not is_carried:
        return "a number"
    return f"of type {name}"


def _name(leaf: Any) -> str:
    """The name of a kind of numbers, of which there may be an array, or of another type."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None:
        for name, kind in KINDS.items():
            if jnp.issubdtype(dtype, kind):
                return name
    return type(leaf).__name__
