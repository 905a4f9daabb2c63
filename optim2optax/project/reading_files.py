"""Reading one file."""

from __future__ import annotations

import os
import stat

from optim2optax.project.finding import Found

FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)
"""On Windows, a file is read as text unless one says otherwise."""

CHUNK = 1 << 20


class UnreadableError(Exception):
    """A file cannot be read; the message says why in a few words."""


def read_file(found: Found) -> bytes:
    """The file's bytes. Raises UnreadableError; a pipe or a device is never opened."""
    try:
        status = os.stat(found.location)
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise UnreadableError("not a regular file")
        # of a folder, that fails with the reason
        descriptor = os.open(found.location, FLAGS)
        try:
            return _contents(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from error


def _contents(descriptor: int, size: int) -> bytes:
    """All bytes of a file whose size is known, and needs not be asked for again as `open` does."""
    content = os.read(descriptor, size + 1)
    if len(content) == size:
        return content
    # it is being written to, or too large for one call
    parts = [content]
    while parts[-1]:
        parts.append(os.read(descriptor, CHUNK))
    return b"".join(parts)
