"""Training checkpoints of the old Flax: what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CheckpointError(Exception):
    """A file that is no checkpoint, or cannot be read as one; the message names it, says what is wrong, and what to do."""


class UnwritableError(CheckpointError):
    """A place to which nothing can be written, whatever that is."""


@contextmanager
def to_be_read(path: Path) -> Iterator[None]:
    """Say of what the system does not let be done with a path that this cannot be read."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from None


@contextmanager
def to_be_written(path: Path) -> Iterator[None]:
    """The same of a path that cannot be written."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(f"{path} cannot be written: {error.strerror or error}.") from None
