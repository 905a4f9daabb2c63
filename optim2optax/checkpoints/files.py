"""The checkpoints at a path.

There is one, or a folder has the history that `flax.training.checkpoints` and Orbax keep. A new one
takes the place of nothing, or, with `--force`, of one checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from optim2optax.checkpoints import (
    CheckpointError,
    flax_msgpack,
    orbax,
    to_be_read,
    to_be_written,
)
from optim2optax.checkpoints.flax_msgpack import Tree

PREFIX = "checkpoint_"
"""The default prefix in `flax.training.checkpoints`, ahead of the number of the step."""

NUMBER = r"(?:(?<![A-Za-z0-9])[-+])?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
"""A step, or a metric. In `model-5` the sign is a separator, in `model_-5` it is none."""

NUMBERED = re.compile(rf"(.*?){NUMBER}(\.[A-Za-z]\w*)?")
"""The name of a checkpoint: a prefix, its number, and perhaps an extension."""

NONE = re.compile(
    rf"{PREFIX}tmp$|.*(_gda|\.tmp)$|.*\.orbax-checkpoint-tmp|events\.out\.tfevents"
)
"""Unfinished checkpoints, a folder of arrays beside one, and what TensorBoard reads."""


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
        found: list[Path] = []
        for entry in _numbered(path):
            # 100/default and 100/ema: the items of a step
            found += [entry] if _is_one(entry) else _items(entry)
        # the path of one step itself
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
    with_prefix = (entry for entry in folder.iterdir() if entry.name.startswith(PREFIX))
    # by the default prefix, as Flax looks for them, else by any
    found = _in_order(with_prefix) or _numbered(folder)
    if not found:
        return folder
    newest = found[-1]
    # generator_10 and discriminator_10
    if len({*map(_kind, found)}) > 1 and not newest.name.startswith(PREFIX):
        raise CheckpointError(
            f"{folder} has checkpoints of several names in it: give one of them, such as {newest}."
        )
    # checkpoint_100 -> ../other_run/checkpoint_100
    if newest.is_symlink() and not newest.resolve().is_relative_to(folder.resolve()):
        raise CheckpointError(
            f"{newest} is a link out of its folder: give {newest.resolve()} if you mean that."
        )
    return newest


def _order(entry: Path) -> tuple[list[str | float], str]:
    """The key by which Flax sorts checkpoints: the texts and numbers of their names, in turn."""
    # model_10.5 is split into "model_", "10.5" and "": every second part is a number
    parts = re.split(f"({NUMBER})", entry.name)
    key = [float(part) if index % 2 else part for index, part in enumerate(parts)]
    return key, entry.name


def _is_one(path: Path) -> bool:
    return path.is_file() or orbax.is_orbax(path)


def _items(path: Path) -> list[Path]:
    """The checkpoints of one step, such as `5/state.msgpack`, or the items of Orbax, in folders."""
    inside = path.iterdir() if path.is_dir() else ()
    named = (inner for inner in inside if not NONE.match(inner.name))
    # a numbered folder is a step of its own
    items = (inner for inner in named if not NUMBERED.fullmatch(inner.name))
    return sorted(filter(_is_filled, items))


def _numbered(path: Path) -> list[Path]:
    return _in_order(
        entry for entry in path.iterdir() if NUMBERED.fullmatch(entry.name)
    )


def _in_order(entries: Iterable[Path]) -> list[Path]:
    """What may be checkpoints, in the order of their numbers.

    `config_5.json` is none. One that is damaged stays beside others with its name.
    """
    named = [entry for entry in entries if not NONE.match(entry.name)]
    filled = [entry for entry in named if _is_filled(entry) or _items(entry)]
    empty = (entry for entry in named if entry.is_file() and not entry.stat().st_size)
    kinds = {_kind(entry) for entry in filled or empty}
    return sorted((entry for entry in named if _kind(entry) in kinds), key=_order)


def _kind(entry: Path) -> tuple[str, ...]:
    """What a name is without its number."""
    match = NUMBERED.fullmatch(entry.name)
    return match.groups("") if match else (entry.name,)


def _is_filled(path: Path) -> bool:
    return orbax.is_orbax(path) or flax_msgpack.begins(path)


def read(path: Path) -> Tree:
    """The tree in a checkpoint, of whichever format.

    Raises:
      CheckpointError: if it cannot be read.
    """
    if orbax.is_orbax(path):
        return orbax.read(path)
    return flax_msgpack.read(path)


def size_of(path: Path) -> int:
    """How many bytes a checkpoint takes."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def refuse_to_replace(new: Path, source: Path, overwrite: bool) -> None:
    """Refuse a path at which something other than a checkpoint is, or that contains the source.

    Raises:
      CheckpointError: if there is something, and it is not to be overwritten, or must not be.
      UnwritablePathError: if the system does not tell what is there.
    """
    with to_be_written(new):
        exists = new.exists()
        # also through links, and also for a folder around both
        here, there = new.resolve(), source.resolve()
        if new.is_symlink() and not exists:
            why = "is a link to what does not exist: choose another name"
        elif here.is_relative_to(there) or there.is_relative_to(here):
            why = (
                "exists, and is or holds what is read, or is in it: choose another name"
            )
        elif exists and not overwrite:
            why = "exists: choose another name, or use --force"
        elif exists and not _is_checkpoint(new):
            why = "exists, and is no checkpoint, which --force would replace: choose another name"
        else:
            return
    raise CheckpointError(f"{new} {why}.")


def _is_checkpoint(path: Path) -> bool:
    if path.is_dir():
        return orbax.is_nothing_else(path)
    if not path.is_file():
        return False
    try:
        return isinstance(flax_msgpack.read(path), dict)
    except CheckpointError:
        return False
