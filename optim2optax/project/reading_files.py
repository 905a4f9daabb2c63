"""Reading one file."""

from __future__ import annotations

import os
import stat


class UnreadableError(Exception):
    """A file cannot be read; the message says why in a few words."""


def read_file(location: str) -> bytes:
    """The file's bytes. Raises UnreadableError; a pipe or a device is never opened."""
    try:
        status = os.stat(location)
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise UnreadableError("not a regular file")
        # of a folder, that fails with the reason
        with open(location, "rb") as file:
            return file.read()
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from error
