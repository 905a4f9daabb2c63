"""A legacy checkpoint as one that the migrated program reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from flax import serialization

from optim2optax.checkpoints import (
    CheckpointError,
    orbax,
    to_be_read,
    to_be_written,
)
from optim2optax.checkpoints.factories import (
    forget_modules_here,
    importing_from_here,
    made,
    made_by,
    thought_of,
)
from optim2optax.checkpoints.files import checkpoints_at, newest_at, refuse_to_replace
from optim2optax.checkpoints.loading import load
from optim2optax.checkpoints.missing_transformations import split
from optim2optax.checkpoints.serializing import write
from optim2optax.checkpoints.state_dict_places import leaves, quoted

Format = Literal["msgpack", "orbax"]
AT_ONCE = 2**20
"""The number of elements that are checked at once, so that their mask stays small."""


def convert(
    old: Path,
    new: Path,
    factory: str,
    format_: Format,
    overwrite: bool = False,
    before: str | None = None,
    dry_run: bool = False,
    params_only: bool = False,
) -> tuple[Path, list[str]]:
    """Convert a checkpoint.

    Args:
      old: a checkpoint of the old Flax, or a folder with several, of which the newest is taken; it
        is only read.
      new: what to write: a file, which `flax.serialization` and `flax.training.checkpoints` of
        today read, or a folder of Orbax.
      factory: `module:function`, from the current folder: the function, called without arguments,
        gives the migrated program's fresh state.
      format_: which of the two to write.
      overwrite: whether `new` may be a checkpoint already.
      before: `FILE:FUNCTION` of the program before its migration, by which a step of both is
        compared.
      dry_run: whether to do all but write.
      params_only: whether moments and steps start from zero.

    Returns:
      The checkpoint that was read, and the places of leaves with infinite numbers or NaN.

    Raises:
      CheckpointError: if it cannot be converted; then nothing is written. An UnwritablePathError,
        if the reason is not the content of `old`.
    """
    source = newest_at(old)
    refuse_to_replace(new, source, overwrite)
    try:
        with importing_from_here(factory):
            if before is None:
                state = _loaded(source, factory, params_only)
            else:
                state = _compared(source, factory, before)
        tree = jax.tree_util.tree_map(_plain, serialization.to_state_dict(state))
        if not overwrite:  # what has appeared meanwhile
            refuse_to_replace(new, source, overwrite)
        if not dry_run and not new.parent.exists():
            with to_be_written(new):
                new.parent.mkdir(parents=True, exist_ok=True)
        if dry_run:
            pass
        elif format_ == "orbax":
            orbax.write(new, state)
        else:
            write(new, tree)
    except MemoryError:
        raise CheckpointError(f"{source} takes more memory than there is.") from None
    return source, [quoted(path) for path, leaf in leaves(tree) if not _is_finite(leaf)]


def planned(old: Path, new: Path) -> list[tuple[Path, Path]]:
    """Every checkpoint in a folder with its place below a new one, under the same name.

    Raises:
      CheckpointError: if there is none, or the new folder is the old one, or cannot be.
    """
    with to_be_read(old):
        if not old.is_dir():
            raise CheckpointError(f"{old} is no folder with checkpoints.")
    with to_be_written(new):
        # an existing folder may get further checkpoints
        if new.exists() and (not new.is_dir() or new.samefile(old)):
            raise CheckpointError(
                f"{new} is no other folder to write to: choose another name."
            )
    return [(source, new / source.relative_to(old)) for source in checkpoints_at(old)]


def _is_finite(leaf: Any) -> bool:
    """Whether a leaf has only finite numbers."""
    # JAX knows that bfloat16 is inexact, NumPy does not
    if not isinstance(leaf, np.ndarray) or not jax.numpy.issubdtype(
        leaf.dtype, jax.numpy.inexact
    ):
        return True
    flat = leaf.ravel()
    starts = range(0, flat.size, AT_ONCE)
    return all(np.isfinite(flat[start : start + AT_ONCE]).all() for start in starts)


def _loaded(source: Path, factory: str, params_only: bool) -> Any:
    """The state of the program with the values of a checkpoint.

    The fresh state is abstract, if that is possible. It is not if the function asks for numbers, or
    if the function or its transformation keep what they compute.
    """
    try:
        state = load(source, *thought_of(factory), params_only=params_only)
        return _completed(state, factory)
    except CheckpointError:
        raise
    except (Exception, SystemExit):  # noqa: BLE001 - whatever it is, it is the program's
        # once more, with numbers
        forget_modules_here()
        return load(source, *made(factory), params_only=params_only)


def _compared(source: Path, factory: str, before: str) -> Any:
    """The same as `_loaded`, if the state steps as the program did before its migration."""
    from optim2optax.checkpoints.trial_step import compare_steps

    state, transformations = made(factory)
    state = load(source, state, transformations)
    compare_steps(source, before, state, transformations)
    return state


def _completed(state: Any, factory: str) -> Any:
    """A state without abstract leaves: the program makes those that the checkpoint does not have.

    A compiled function computes only the leaves that it returns.
    """
    values, structure = jax.tree_util.tree_flatten(state)
    missing = [
        number
        for number, leaf in enumerate(values)
        if isinstance(leaf, jax.ShapeDtypeStruct)
    ]
    if missing:
        make = made_by(factory)

        def missing_leaves() -> list[Any]:
            made_leaves = jax.tree_util.tree_leaves(split(make())[0])
            return [made_leaves[number] for number in missing]

        for number, leaf in zip(missing, jax.jit(missing_leaves)(), strict=True):
            values[number] = leaf
    return jax.tree_util.tree_unflatten(structure, values)


def _plain(leaf: Any) -> Any:
    """A leaf as an array of NumPy, if it is one of JAX."""
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
