"""A legacy checkpoint as a file that the migrated program reads."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import serialization

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.loading import load_legacy_checkpoint
from optim2optax.checkpoints.writing import write


def convert(old: Path, new: Path, factory: str, overwrite: bool = False) -> None:
    """Convert a checkpoint.

    Args:
      old: a file that the old Flax wrote; it is only read.
      new: the file to write, which `flax.serialization` and `flax.training.checkpoints` of today read.
      factory: `module:function`, from the current folder: the function, called without arguments, gives the migrated program's
        fresh state.
      overwrite: whether `new` may exist.

    Raises:
      CheckpointError: if that cannot be; then nothing is written.
    """
    if new.exists() and not overwrite:
        raise CheckpointError(f"{new} exists: choose another name, or use --force.")
    state = load_legacy_checkpoint(old, made_by(factory))
    write(new, jax.tree_util.tree_map(_plain, serialization.to_state_dict(state)), overwrite)


def _plain(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf


def made_by(factory: str) -> Any:
    """What a function of the user's gives.

    Raises:
      CheckpointError: if there is no such function, or it fails.
    """
    module, separator, function = factory.partition(":")
    if not (module and separator and function):
        raise CheckpointError(f"{factory} names no function: write module:function, such as train:create_state.")
    sys.path.insert(0, os.getcwd())
    try:
        made = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        raise CheckpointError(f"{factory} cannot be imported from here: {error}.") from None
    except AttributeError:
        raise CheckpointError(f"the module {module} has no function {function}.") from None
    finally:
        sys.path.remove(os.getcwd())
    try:
        return made()
    except Exception as error:
        raise CheckpointError(f"{factory} failed with {type(error).__name__}: {error}") from error
