"""Which files hold changes that git could not give back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

from optim2optax.project.finding import Found

CHANGED = ("ls-files", "-z", "--modified", "--others", "--exclude-standard")


class UncommittedError(Exception):
    """Files that would be overwritten have changes that are neither committed nor staged."""

    def __init__(self, files: Iterable[Found]) -> None:
        self.paths = [file.path for file in files]
        super().__init__(f"neither committed nor staged: {', '.join(self.paths)}")


def uncommitted(files: Iterable[Found]) -> list[Found]:
    """The files in git repositories of which the content is neither committed nor staged."""
    folders: dict[str, dict[str, Found]] = {}
    for file in files:
        folder, name = os.path.split(file.location)
        folders.setdefault(folder, {})[name] = file
    return [
        own[name]
        for folder, own in folders.items()
        for name in _uncommitted_names(folder, own)
    ]


def _uncommitted_names(folder: str, names: Iterable[str]) -> list[str]:
    command = ["git", "--literal-pathspecs", "-C", folder, *CHANGED, "--", *names]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        # there is no git, so that nobody counts on it
        return []
    listed = filter(None, done.stdout.split(b"\0"))
    # a file that conflicts is listed once for each side
    return list(dict.fromkeys(map(os.fsdecode, listed)))
