"""Temporary files beside those that they replace, and leftovers of them after a killed run."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterable

LEFTOVER = re.compile(r"\.(.+)\.optim2optax-[a-z0-9_]{8}\.tmp")
OLD = 3600
"""The age in seconds from which on no run still writes to a temporary file."""


def temporary_beside(location: str) -> tuple[int, str]:
    """Make a hidden file beside another one, and open it. Gives the descriptor and the path."""
    folder, name = os.path.split(location)
    return tempfile.mkstemp(prefix=f".{name}.optim2optax-", suffix=".tmp", dir=folder)


def remove_leftovers(locations: Iterable[str]) -> None:
    """Remove old temporary files beside some files, which killed runs have left."""
    by_folder: dict[str, set[str]] = {}
    for location in locations:
        folder, name = os.path.split(location)
        by_folder.setdefault(folder, set()).add(name)
    for folder, names in by_folder.items():
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder):
                # .train.py.optim2optax-k3x_9q2a.tmp
                found = LEFTOVER.fullmatch(entry)
                if found and found[1] in names:
                    _remove_if_old(os.path.join(folder, entry))


def _remove_if_old(path: str) -> None:
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        # a folder or a link of such a name is not one of ours
        is_file = stat.S_ISREG(status.st_mode)
        if is_file and time.time() - status.st_mtime > OLD:
            os.unlink(path)
