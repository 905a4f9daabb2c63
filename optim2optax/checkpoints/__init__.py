"""Training checkpoints of the old Flax: what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


class CheckpointError(Exception):
    """A file is not a checkpoint, or cannot be read as one.

    The message names it, says what is wrong, and what to do.
    """


class UnwritablePathError(CheckpointError):
    """A path cannot be written to, whatever the content would be."""


class OtherOptimizerError(CheckpointError):
    """Only the parameters of an optimizer fit into the new state."""


@contextmanager
def explained(what: str, kind: type[CheckpointError]) -> Iterator[None]:
    """Turn errors of the system into one that says what could not be done, and why."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}.") from None


def to_be_read(path: Path) -> AbstractContextManager[None]:
    """Turn errors of the system into the error that a path cannot be read."""
    return explained(f"{path} cannot be read", CheckpointError)


def to_be_written(path: Path) -> AbstractContextManager[None]:
    """Turn errors of the system into the error that a path cannot be written."""
    return explained(f"{path} cannot be written", UnwritablePathError)
