"""Replacing files, making and deleting them: each one atomically, and none if one of them cannot be."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from optim2optax.project.temporary import remove_leftovers, temporary_beside

CACHE = "__pycache__"


@dataclass(frozen=True)
class Change:
    """The file at `location` (a real path), which held `before`, is to hold `after`.

    One that is new held None, and one that is to be deleted holds None after.
    """

    location: str
    before: bytes | None
    after: bytes | None


class UnwritableError(Exception):
    """Why a file cannot be replaced, in a few words."""


def write_files(changes: Sequence[Change]) -> dict[str, str]:
    """Write all the changes, or none: an optimizer may reach over several files, and half of it would not run.

    Every new content lies complete, beside the file it is for, before the first file is replaced; so a crash or a full
    disk leaves each file either as it was or as it should be. New files come first, and deletions last: what is imported
    is there at every moment.

    Returns:
      By location, why a file was not written; empty if all were.
    """
    staged: dict[str, str] = {}
    problems: dict[str, str] = {}
    changes = sorted(changes, key=lambda change: (change.after is None, change.before is not None))
    remove_leftovers(change.location for change in changes)
    folders = list(_made_folders(changes))
    try:
        for change in changes:
            try:
                staged[change.location] = _stage(change)
            except (UnwritableError, OSError) as error:
                problems[change.location] = _reason(error)
        if problems:
            return {
                change.location: "not written, because another file cannot be" for change in changes
            } | problems
        for change in changes:
            try:
                _require_unchanged(change)
                _put(staged[change.location], change)
                del staged[change.location]
            except (UnwritableError, OSError) as error:
                problems[change.location] = _reason(error)
        return problems
    finally:
        for leftover in filter(None, staged.values()):
            with contextlib.suppress(OSError):
                os.unlink(leftover)
        _remove_empty(
            [
                *folders,
                *(os.path.dirname(change.location) for change in changes if change.after is None),
            ]
        )


def _stage(change: Change) -> str:
    """Write the new content beside the file it is for, with that file's owner and mode; returns where, or nothing if it goes."""
    _require_unchanged(change)
    if change.after is None:
        return ""
    status = os.stat(
        change.location if change.before is not None else os.path.dirname(change.location)
    )
    handle, temporary = temporary_beside(change.location)
    try:
        with open(handle, "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if sys.platform != "win32":
            with contextlib.suppress(PermissionError):
                os.chown(temporary, status.st_uid, status.st_gid)
        # Whoever can go into a folder can read a file, or write it.
        os.chmod(
            temporary,
            stat.S_IMODE(status.st_mode) & (0o7777 if change.before is not None else 0o666),
        )
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _put(staged: str, change: Change) -> None:
    if change.after is None:
        os.unlink(change.location)
    else:
        os.replace(staged, change.location)


def _made_folders(changes: Sequence[Change]) -> Iterator[str]:
    """Make the folders that new files lack. One that cannot be made is found to be missing later."""
    for folder in dict.fromkeys(
        os.path.dirname(change.location) for change in changes if change.before is None
    ):
        with contextlib.suppress(OSError):
            os.mkdir(folder)
            yield folder


def _remove_empty(folders: Iterable[str]) -> None:
    """Remove folders in which nothing is left but what Python has compiled."""
    for folder in dict.fromkeys(folders):
        with contextlib.suppress(OSError):
            if os.listdir(folder) == [CACHE]:
                shutil.rmtree(os.path.join(folder, CACHE))
            os.rmdir(folder)


def _require_unchanged(change: Change) -> None:
    if change.before is None:
        if os.path.lexists(change.location):
            raise UnwritableError("not written, because it has appeared meanwhile; run again")
        return
    with open(change.location, "rb") as file:
        if file.read() != change.before:
            raise UnwritableError(
                "not written, because it changed while it was being migrated; run again"
            )
    if not os.access(change.location, os.W_OK):
        raise UnwritableError("cannot be written: it is read-only")


def _reason(error: Exception) -> str:
    return (
        f"cannot be written: {error.strerror or error}"
        if isinstance(error, OSError)
        else str(error)
    )
