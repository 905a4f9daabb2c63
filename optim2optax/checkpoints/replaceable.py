"""What a converted checkpoint may replace: nothing, or, with `--force`, one checkpoint."""

from __future__ import annotations

from pathlib import Path

from optim2optax.checkpoints import CheckpointError, flax_msgpack, orbax, to_be_written


def refuse_to_replace(new: Path, source: Path, overwrite: bool) -> None:
    """Refuse a path at which something other than a checkpoint is, or that contains the source.

    Raises:
      CheckpointError: if there is something, and it is not to be overwritten, or must not be.
      UnwritableError: if the system does not tell what is there.
    """
    with to_be_written(new):
        _refuse_to_replace(new, source, overwrite)


def _refuse_to_replace(new: Path, source: Path, overwrite: bool) -> None:
    if new.is_symlink() and not new.exists():
        raise CheckpointError(
            f"{new} is a link to what does not exist: choose another name."
        )
    # also through links, and also for a folder around both
    here, there = new.resolve(), source.resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise CheckpointError(
            f"{new} exists, and is or holds what is read, or is in it: choose another name."
        )
    if not new.exists():
        return
    if not overwrite:
        raise CheckpointError(f"{new} exists: choose another name, or use --force.")
    if not _is_checkpoint(new):
        raise CheckpointError(
            f"{new} exists, and is no checkpoint, which --force would replace: choose another name."
        )


def _is_checkpoint(path: Path) -> bool:
    if path.is_dir():
        return orbax.is_nothing_else(path)
    if not path.is_file():
        return False
    try:
        return isinstance(flax_msgpack.read(path), dict)
    except CheckpointError:
        return False
