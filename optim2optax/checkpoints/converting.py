"""A legacy checkpoint as one that the migrated program reads."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from flax import serialization

from optim2optax.checkpoints import CheckpointError, orbax
from optim2optax.checkpoints.files import newest_at
from optim2optax.checkpoints.loading import load_legacy_checkpoint
from optim2optax.checkpoints.writing import write


def convert(old: Path, new: Path, factory: str, format_: Literal["msgpack", "orbax"], overwrite: bool = False) -> Path:
    """Convert a checkpoint.

    Args:
      old: what the old Flax wrote, or a folder with several, of which the newest is taken; it is only read.
      new: what to write: a file, which `flax.serialization` and `flax.training.checkpoints` of today read, or a folder of Orbax.
      factory: `module:function`, from the current folder: the function, called without arguments, gives the migrated program's
        fresh state.
      format_: which of them.
      overwrite: whether `new` may exist.

    Returns:
      The checkpoint that was read.

    Raises:
      CheckpointError: if that cannot be; then nothing is written.
    """
    if new.exists() and not overwrite:
        raise CheckpointError(f"{new} exists: choose another name, or use --force.")
    source = newest_at(old)
    with _importing_from_here():
        make = made_by(factory)
        state = _completed(load_legacy_checkpoint(source, _like_fresh(make, factory)), make)
    if format_ == "orbax":
        orbax.write(new, state, overwrite)
    else:
        write(new, jax.tree_util.tree_map(_plain, serialization.to_state_dict(state)), overwrite)
    return source


def _like_fresh(make: Callable[[], Any], factory: str) -> Any:
    """The structure, shapes and dtypes of a program's fresh state, or that state itself if it takes real numbers to make it.

    A state that is only thought of takes no memory.

    Raises:
      CheckpointError: if there is none.
    """
    try:
        return jax.eval_shape(make)
    except Exception:  # noqa: BLE001 - whatever it is, it is the program's
        try:
            return make()
        except Exception as error:
            raise CheckpointError(f"{factory} failed with {type(error).__name__}: {error}") from error


def _completed(state: Any, make: Callable[[], Any]) -> Any:
    """A state in which no number is only thought of: what it has not from the checkpoint is as the program makes it."""
    leaves, structure = jax.tree_util.tree_flatten(state)
    missing = [number for number, leaf in enumerate(leaves) if isinstance(leaf, jax.ShapeDtypeStruct)]
    if missing:
        fresh = jax.jit(lambda: [jax.tree_util.tree_leaves(make())[number] for number in missing])()
        for number, leaf in zip(missing, fresh, strict=True):
            leaves[number] = leaf
    return jax.tree_util.tree_unflatten(structure, leaves)


def _plain(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf


def made_by(factory: str) -> Callable[[], Any]:
    """A function of the user's.

    Raises:
      CheckpointError: if there is none.
    """
    module, separator, function = factory.partition(":")
    if not (module and separator and function):
        raise CheckpointError(f"{factory} names no function: write module:function, such as train:create_state.")
    try:
        made: Callable[[], Any] = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        raise CheckpointError(f"{factory} cannot be imported from here: {error}.") from None
    except AttributeError:
        raise CheckpointError(f"the module {module} has no function {function}.") from None
    return made


@contextmanager
def _importing_from_here() -> Iterator[None]:
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        sys.path.remove(os.getcwd())
