"""Training checkpoints of the old Flax: what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CheckpointError(Exception):
    """A file is not a checkpoint, or cannot be read as one.

    The message names it, says what is wrong, and what to do.
    """


class UnwritablePathError(CheckpointError):
    """A path cannot be written to, whatever the content would be."""


@contextmanager
def to_be_read(path: Path) -> Iterator[None]:
    """Turn errors of the system into the error that a path cannot be read."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read: {error.strerror or error}."
        ) from None


@contextmanager
def to_be_written(path: Path) -> Iterator[None]:
    """Turn errors of the system into the error that a path cannot be written."""
    try:
        yield
    except OSError as error:
        raise UnwritablePathError(
            f"{path} cannot be written: {error.strerror or error}."
        ) from None
