"""Training checkpoints of the old Flax: what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path


class CheckpointError(Exception):
    """A file is not a checkpoint, or cannot be read as one.

    The message names it, says what is wrong, and what to do. A command ends with the exit code.
    """

    exit_code = 1


class UnwritablePathError(CheckpointError):
    """A path cannot be written to, whatever the content would be."""

    exit_code = 2


class OtherOptimizerError(CheckpointError):
    """Only the parameters of an optimizer fit into the new state."""


@contextmanager
def _explained(path: Path, done: str, kind: type[CheckpointError]) -> Iterator[None]:
    """Turn errors of the system into one that says what could not be done, and why."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise kind(f"{path} cannot be {done}: {why}.") from None


to_be_read = partial(_explained, done="read", kind=CheckpointError)
to_be_written = partial(_explained, done="written", kind=UnwritablePathError)
