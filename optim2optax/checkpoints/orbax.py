"""The format in which Orbax writes: a folder for each checkpoint."""

from __future__ import annotations

import shutil
import tempfile
import time
import warnings
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from optim2optax.checkpoints import (
    CheckpointError,
    UnwritablePathError,
    flax_msgpack,
    to_be_written,
)
from optim2optax.checkpoints.flax_msgpack import DTYPES, Tree

MARKS = ("_METADATA", "manifest.ocdbt", "checkpoint")
"""A folder with one of these files is a checkpoint of Orbax. Its first versions wrote the last."""

PATIENCE = 50
"""The number of attempts, a tenth of a second apart, to remove a folder that Orbax may write to."""


def is_orbax(path: Path) -> bool:
    """Whether this is the folder of one checkpoint."""
    return path.is_dir() and any((path / name).is_file() for name in MARKS)


PARTS = {
    *MARKS,
    "_CHECKPOINT_METADATA",
    "_sharding",
    "_strings.json",
    "array_metadatas",
    "commit_success.txt",
    "d",
}
PROCESS = "ocdbt.process_"
"""The prefix of the folders of single processes, which some checkpoints have."""


def is_nothing_else(path: Path) -> bool:
    """Whether this is the folder of one checkpoint of today's Orbax, without any other file."""
    names = {entry.name for entry in path.iterdir()}
    known = {name for name in names if name in PARTS or name.startswith(PROCESS)}
    return names == known and not names.isdisjoint(MARKS[:2])


def read(path: Path) -> Tree:
    """The tree in a folder, as `flax_msgpack.read` gives that of a file.

    Raises:
      CheckpointError: if Orbax cannot read it.
    """
    index = path / "checkpoint"
    if index.is_file() and not flax_msgpack.begins(index):
        raise CheckpointError(
            f"{path} is of TensorFlow: neither Flax nor Orbax wrote it."
        )
    try:
        import jax
        import orbax.checkpoint as ocp
    except ModuleNotFoundError as error:
        raise CheckpointError(
            f"{path} is of Orbax, for which {error.name} is missing: install orbax-checkpoint."
        ) from None
    checkpointer = ocp.PyTreeCheckpointer()

    def restored_as(leaf: Any) -> Any:
        is_array = getattr(leaf, "shape", None) is not None
        return ocp.RestoreArgs(restore_type=np.ndarray if is_array else None)

    try:
        with warnings.catch_warnings():
            # Orbax warns that no shardings are given, which is usual here
            warnings.simplefilter("ignore")
            known = checkpointer.metadata(path.absolute())
            # newer versions of Orbax put the tree of metadata into records
            known = getattr(known, "item_metadata", known)
            known = getattr(known, "tree", known)
            kinds = jax.tree_util.tree_map(restored_as, known)
            return _plain(checkpointer.restore(path.absolute(), restore_args=kinds))
    except Exception as error:  # noqa: BLE001 - it raises all kinds for what is no checkpoint
        first = str(error).strip().partition("\n")[0][:200]
        raise CheckpointError(
            f"{path} cannot be read by Orbax ({type(error).__name__}: {first})."
        ) from None


def _plain(tree: Any) -> Tree:
    """A tree of dicts and leaves."""
    if isinstance(tree, dict):
        return {str(key): _plain(value) for key, value in tree.items()}
    # as the state dict of a list
    if isinstance(tree, list | tuple):
        return {str(number): _plain(value) for number, value in enumerate(tree)}
    if not isinstance(tree, np.ndarray | np.generic):
        return tree
    if tree.dtype.name not in DTYPES:
        raise ValueError(f"an array of type {tree.dtype}")
    return np.asarray(tree)


def write(path: Path, state: Any) -> None:
    """Write a state, which `orbax.checkpoint` reads with one like it.

    The folder appears whole or not at all.

    Raises:
      UnwritablePathError: if it cannot be written.
    """
    # on the same disk, so that the folder can be renamed
    with to_be_written(path):
        beside = Path(
            tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.absolute().parent)
        )
    new, old = beside / "new", beside / "old"
    try:
        _save(new, state)
        if path.exists():
            path.rename(old)
        new.rename(path)
    except (OSError, ValueError, TypeError) as error:
        if old.exists():
            with suppress(OSError):
                old.rename(path)
        kept = f" What was there is {old} now." if old.exists() else ""
        raise UnwritablePathError(f"{path} cannot be written: {error}.{kept}") from None
    finally:
        # the former checkpoint is kept if nothing has taken its place
        if path.exists() or not old.exists():
            _remove(beside)


class _Shared(np.ndarray):
    """An array that Orbax does not copy before it writes in the background."""

    def __deepcopy__(self, _: Any) -> _Shared:
        return self


def _save(path: Path, state: Any) -> None:
    """Have Orbax write a state with little additional memory.

    It copies nothing and, where it has an option for that, compresses nothing.
    """
    import jax
    import orbax.checkpoint as ocp

    def shared(leaf: Any) -> Any:
        return leaf.view(_Shared) if type(leaf) is np.ndarray else leaf

    has_option = "use_compression" in signature(ocp.PyTreeCheckpointer).parameters
    options = {"use_compression": False} if has_option else {}
    ocp.PyTreeCheckpointer(**options).save(path, jax.tree_util.tree_map(shared, state))


def _remove(folder: Path) -> None:
    """Remove a folder in which Orbax, when it has failed, may still be writing for a moment."""
    for _ in range(PATIENCE):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(0.1)
