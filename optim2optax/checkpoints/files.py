"""The checkpoints at a path: one, or the history that `flax.training.checkpoints` and Orbax keep in a folder."""

from __future__ import annotations

import re
from pathlib import Path

from optim2optax.checkpoints import CheckpointError, flax_msgpack, orbax
from optim2optax.checkpoints.flax_msgpack import Tree

PREFIX = "checkpoint_"
"""What `flax.training.checkpoints` puts ahead of the number of the step, unless told otherwise."""

NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>-?\d+(?:\.\d+)?)$")
"""A prefix, and the number of the step."""


def checkpoints_at(path: Path) -> list[Path]:
    """The checkpoint at a path, or the numbered ones in a folder, in the order of their numbers.

    Raises:
      CheckpointError: if there is none.
    """
    if not path.exists():
        raise CheckpointError(f"{path} does not exist.")
    if _is_one(path):
        return [path]
    if not path.is_dir():
        raise CheckpointError(f"{path} is neither a file nor a folder.")
    try:
        folders = [entry for entry in _numbered(path) if _is_one(entry) or entry.is_dir()]
        found = [one for entry in folders for one in ([entry] if _is_one(entry) else _items(entry))]
        found += _items(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    if not found:
        raise CheckpointError(f"{path} has no numbered checkpoint, such as {PREFIX}100, in it: give the file itself.")
    return found


def newest_at(path: Path) -> Path:
    """The checkpoint at a path, or the one with the highest number in a folder.

    Raises:
      CheckpointError: if there is none, or more than one.
    """
    if path.is_dir() and not _is_one(path):
        numbered = _numbered(path)
        path = ([entry for entry in numbered if entry.name.startswith(PREFIX)] or numbered or [path])[-1]
    found = checkpoints_at(path)
    if len(found) > 1:
        raise CheckpointError(f"{path} has {len(found)} checkpoints in it: give one of them, such as {found[0]}.")
    return found[0]


def _is_one(path: Path) -> bool:
    return path.is_file() or orbax.is_orbax(path)


def _items(path: Path) -> list[Path]:
    """The checkpoints of one step, of which Orbax may have a folder for each of several."""
    return sorted(inner for inner in path.iterdir() if orbax.is_orbax(inner) and not NUMBERED.match(inner.name))


def _numbered(path: Path) -> list[Path]:
    found = [(match, entry) for entry in path.iterdir() if (match := NUMBERED.match(entry.name))]
    return [
        entry for _, entry in sorted(found, key=lambda one: (one[0]["prefix"], float(one[0]["number"]), one[1].name))
    ]


def read(path: Path) -> Tree:
    """The tree in a checkpoint, of whichever format.

    Raises:
      CheckpointError: if it cannot be read.
    """
    return orbax.read(path) if orbax.is_orbax(path) else flax_msgpack.read(path)


def size_of(path: Path) -> int:
    """How many bytes a checkpoint takes."""
    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size
    )
