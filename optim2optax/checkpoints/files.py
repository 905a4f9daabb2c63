"""The checkpoints at a path: one, or the history that `flax.training.checkpoints` and Orbax keep in a folder."""

from __future__ import annotations

import re
from pathlib import Path

from optim2optax.checkpoints import CheckpointError, flax_msgpack, orbax, to_be_read
from optim2optax.checkpoints.flax_msgpack import Tree

PREFIX = "checkpoint_"
"""What `flax.training.checkpoints` puts ahead of the number of the step, unless told otherwise."""

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
NUMBERED = re.compile(rf"(?P<prefix>.*?)(?P<number>{NUMBER})$")
"""A prefix, and the number of the step, or what the program measured."""

UNFINISHED = re.compile(rf"{PREFIX}tmp$|.*_gda$|.*\.orbax-checkpoint-tmp.*")
"""What Flax takes for no checkpoint: what is left of one that was being written, and a folder of arrays beside one."""


def checkpoints_at(path: Path) -> list[Path]:
    """The checkpoint at a path, or the numbered ones in a folder, in the order of their numbers.

    Raises:
      CheckpointError: if there is none.
    """
    with to_be_read(path):
        if not path.exists():
            raise CheckpointError(f"{path} does not exist.")
        if _is_one(path):
            return [path]
        if not path.is_dir():
            raise CheckpointError(f"{path} is neither a file nor a folder.")
        folders = [entry for entry in _numbered(path) if _is_one(entry) or entry.is_dir()]
        found = [one for entry in folders for one in ([entry] if _is_one(entry) else _items(entry))]
        found += _items(path)
    if not found:
        raise CheckpointError(
            f"{path} has no numbered checkpoint, such as {PREFIX}100, in it: give the file itself."
        )
    return found


def newest_at(path: Path) -> Path:
    """The checkpoint at a path, or the one in a folder that Flax takes for the newest.

    Raises:
      CheckpointError: if there is none, or more than one.
    """
    with to_be_read(path):
        if path.is_dir() and not _is_one(path):
            path = _newest_in(path)
    found = checkpoints_at(path)
    if len(found) > 1:
        raise CheckpointError(
            f"{path} has {len(found)} checkpoints in it: give one of them, such as {found[0]}."
        )
    return found[0]


def _newest_in(folder: Path) -> Path:
    entries = [entry for entry in folder.iterdir() if not UNFINISHED.match(entry.name)]
    found = sorted((entry for entry in entries if entry.name.startswith(PREFIX)), key=_order)
    found = found or _numbered(folder)
    if not found:
        return folder
    newest = found[-1]
    prefixes = {match["prefix"] for entry in found if (match := NUMBERED.match(entry.name))}
    if len(prefixes) > 1 and not newest.name.startswith(PREFIX):
        raise CheckpointError(
            f"{folder} has checkpoints of several names in it: give one of them, such as {newest}."
        )
    if newest.is_symlink() and not newest.resolve().is_relative_to(folder.resolve()):
        raise CheckpointError(
            f"{newest} is a link out of its folder: give {newest.resolve()} if you mean that."
        )
    return newest


def _order(entry: Path) -> tuple[list[str | float], str]:
    """What Flax sorts checkpoints by: the texts and the numbers of their names, by turns."""
    words = re.split(f"({NUMBER})", entry.name)
    return [float(word) if number % 2 else word for number, word in enumerate(words)], entry.name


def _is_one(path: Path) -> bool:
    return path.is_file() or orbax.is_orbax(path)


def _items(path: Path) -> list[Path]:
    """The checkpoints of one step, of which Orbax may have a folder for each of several."""
    return sorted(
        inner
        for inner in path.iterdir()
        if orbax.is_orbax(inner) and not NUMBERED.match(inner.name)
    )


def _numbered(path: Path) -> list[Path]:
    found = (
        entry
        for entry in path.iterdir()
        if NUMBERED.match(entry.name) and not UNFINISHED.match(entry.name)
    )
    return sorted(found, key=_order)


def read(path: Path) -> Tree:
    """The tree in a checkpoint, of whichever format.

    Raises:
      CheckpointError: if it cannot be read.
    """
    return orbax.read(path) if orbax.is_orbax(path) else flax_msgpack.read(path)


def size_of(path: Path) -> int:
    """How many bytes a checkpoint takes."""
    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        if path.is_dir()
        else path.stat().st_size
    )
