"""Files are replaced and made: each one atomically, and all or none of them."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from optim2optax.project.replacing import temporary_beside


@dataclass(frozen=True)
class FileChange:
    """A change of the file at `location` (a real path) from `before` to `after`.

    `before` is None for a new file.
    """

    location: str
    before: bytes | None
    after: bytes


class UnwritableError(Exception):
    """A file cannot be replaced; the message says why in a few words."""


def write_files(changes: Sequence[FileChange]) -> dict[str, str]:
    """Write all the changes, or none.

    An optimizer may reach over several files, and half of its migration would not run. Every new
    content is complete, beside the file that it replaces, before the first file is replaced; so a
    crash or a full disk leaves each file either as it was or as it should be. New files come first:
    imported modules exist at every moment.

    Returns:
      By location, why a file was not written; empty if all were.
    """
    staged: dict[str, str] = {}
    problems: dict[str, str] = {}
    changes = sorted(changes, key=lambda change: change.before is not None)
    folders = list(_made_folders(changes))
    try:
        for change in changes:
            try:
                staged[change.location] = _stage(change)
            except (UnwritableError, OSError) as error:
                problems[change.location] = _reason(error)
        if problems:  # nothing has been replaced yet
            why = "not written, because another file cannot be"
            return {change.location: why for change in changes} | problems
        for change in changes:
            try:
                _require_unchanged(change)
                os.replace(staged[change.location], change.location)
                del staged[change.location]
            except (UnwritableError, OSError) as error:
                problems[change.location] = _reason(error)
        return problems
    finally:
        _clean_up(staged.values(), folders)


def _clean_up(staged: Iterable[str], made_folders: Iterable[str]) -> None:
    """Remove what is left of staged contents, and empty folders that were made."""
    for temporary in staged:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    for folder in made_folders:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _stage(change: FileChange) -> str:
    """Write the new content beside the file that it replaces, with that file's owner and mode.

    Returns:
      The path of the temporary file.
    """
    _require_unchanged(change)
    # a new file gets the owner and the mode of its folder
    like = change.location
    if change.before is None:
        like = os.path.dirname(change.location)
    status = os.stat(like)
    handle, temporary = temporary_beside(change.location)
    try:
        with open(handle, "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if sys.platform != "win32":
            # only root may give a file to another user
            with contextlib.suppress(PermissionError):
                os.chown(temporary, status.st_uid, status.st_gid)
        # the permission to enter a folder is not one to execute a file
        mask = 0o7777 if change.before is not None else 0o666
        os.chmod(temporary, stat.S_IMODE(status.st_mode) & mask)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _made_folders(changes: Sequence[FileChange]) -> Iterator[str]:
    """Make the folders that new files lack. Staging fails in one that cannot be made."""
    new = [change.location for change in changes if change.before is None]
    for folder in dict.fromkeys(map(os.path.dirname, new)):
        with contextlib.suppress(OSError):
            os.mkdir(folder)
            yield folder


def _require_unchanged(change: FileChange) -> None:
    """Refuse to write over an edit of the user since the file was read."""
    if change.before is None:
        if os.path.lexists(change.location):
            raise UnwritableError(
                "not written, because it has appeared meanwhile; run again"
            )
        return
    with open(change.location, "rb") as file:
        if file.read() != change.before:
            raise UnwritableError(
                "not written, because it changed while it was being migrated; run again"
            )
    if not os.access(change.location, os.W_OK):
        raise UnwritableError("cannot be written: it is read-only")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be written: {error.strerror or error}"
    return str(error)
