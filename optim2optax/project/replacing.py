"""A file that appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces `path` once it is complete.

    Raises:
      OSError: if it cannot be written; `path` is unchanged then.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
        with path.open("wb") as file:
            yield file
        return
    mode = _mode(path)
    handle, name = temporary_beside(str(path))
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            # the content is on the disk before the name is
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def temporary_beside(location: str) -> tuple[int, str]:
    """Make a hidden file beside another one, and open it. Gives the descriptor and the path."""
    folder, name = os.path.split(location)
    return tempfile.mkstemp(prefix=f".{name}.optim2optax-", suffix=".tmp", dir=folder)


def _mode(path: Path) -> int:
    """The permissions of a file, or those that a new one gets."""
    if path.exists():
        return path.stat().st_mode & 0o7777
    # the mask can only be read by setting it
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
