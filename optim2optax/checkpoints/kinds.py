"""Kinds of leaves: numbers stay numbers, texts texts, and the leaves of optimizers keep their kind of numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import jax.numpy as jnp

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.places import Path, at, leaves, said

KINDS = {
    "bool": jnp.bool_,
    "int": jnp.integer,
    "float": jnp.floating,
    "complex": jnp.complexfloating,
}


def refuse_other_kinds(new: Mapping[str, Any] | Any, fresh: Any, carried: Collection[Path]) -> None:
    """Refuse a state dict in which a leaf is of another kind than in the fresh one.

    Args:
      new: with the values of a checkpoint.
      fresh: as the program makes it.
      carried: the places that are carried over from legacy optimizers, where all arrays have the kind that the program's have.

    Raises:
      CheckpointError: if there is one.
    """
    for path, value in leaves(new):
        like = at(fresh, path)
        if like is None:
            continue
        is_carried = any(path[: len(place)] == place for place in carried)
        kind, wanted = _kind(value, is_carried), _kind(like, is_carried)
        if kind != wanted:
            raise CheckpointError(
                f"{said(path)} is {kind} in the checkpoint, and {wanted} in the new state."
            )


def _kind(leaf: Any, is_carried: bool) -> str:
    """What a leaf is, in words: of numbers beside an optimizer no more than that."""
    name = _name(leaf)
    return "a number" if name in KINDS and not is_carried else f"of type {name}"


def _name(leaf: Any) -> str:
    dtype = getattr(leaf, "dtype", None)
    found = (
        name for name, kind in KINDS.items() if dtype is not None and jnp.issubdtype(dtype, kind)
    )
    return next(found, type(leaf).__name__)
