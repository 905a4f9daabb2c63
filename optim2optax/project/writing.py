"""Replacing files: each one atomically, and none if one of them cannot be replaced."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from optim2optax.project.temporary import remove_leftovers, temporary_beside


@dataclass(frozen=True)
class Change:
    """The file at `location` (a real path), which held `before`, is to hold `after`."""

    location: str
    before: bytes
    after: bytes


class UnwritableError(Exception):
    """Why a file cannot be replaced, in a few words."""


def write_files(changes: Sequence[Change]) -> dict[str, str]:
    """Write all the changes, or none: an optimizer may reach over several files, and half of it would not run.

    Every new content lies complete, beside the file it is for, before the first file is replaced; so a crash or a full
    disk leaves each file either as it was or as it should be.

    Returns:
      By location, why a file was not written; empty if all were.
    """
    staged: dict[str, str] = {}
    problems: dict[str, str] = {}
    remove_leftovers(change.location for change in changes)
    try:
        for change in changes:
            try:
                staged[change.location] = _stage(change)
            except (UnwritableError, OSError) as error:
                problems[change.location] = _reason(error)
        if problems:
            return {change.location: "not written, because another file cannot be" for change in changes} | problems
        for change in changes:
            try:
                _require_unchanged(change)
                os.replace(staged[change.location], change.location)
                del staged[change.location]
            except (UnwritableError, OSError) as error:
                problems[change.location] = _reason(error)
        return problems
    finally:
        for leftover in staged.values():
            with contextlib.suppress(OSError):
                os.unlink(leftover)


def _stage(change: Change) -> str:
    """Write the new content beside the file it is for, with that file's owner and mode; returns where."""
    _require_unchanged(change)
    status = os.stat(change.location)
    handle, temporary = temporary_beside(change.location)
    try:
        with open(handle, "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if sys.platform != "win32":
            with contextlib.suppress(PermissionError):
                os.chown(temporary, status.st_uid, status.st_gid)
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _require_unchanged(change: Change) -> None:
    with open(change.location, "rb") as file:
        if file.read() != change.before:
            raise UnwritableError("not written, because it changed while it was being migrated; run again")
    if not os.access(change.location, os.W_OK):
        raise UnwritableError("cannot be written: it is read-only")


def _reason(error: Exception) -> str:
    return f"cannot be written: {error.strerror or error}" if isinstance(error, OSError) else str(error)
