"""Which files may declare the dependencies of the files of a run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from optim2optax.project.finding import ALWAYS_SKIPPED, Found, shown, upwards, walk
from optim2optax.project.patterns import Patterns

MARKER = re.compile(r"\.git|pyproject\.toml|setup\.(?:py|cfg)|requirements.*\.txt")
FOLDERS = ("requirements", ".github", "workflows", ".circleci")
"""The folders in the root of a project that are searched beside the folders that are named."""


def find_declaring(
    arguments: Iterable[str], exclude: Patterns, declares: Callable[[str], bool]
) -> list[Found]:
    """The files that `declares` selects by their paths, sorted."""

    def below(entry: os.DirEntry[str]) -> bool:
        if entry.is_dir(follow_symlinks=False):
            return entry.name not in ALWAYS_SKIPPED
        return declares(entry.path)

    def in_root(entry: os.DirEntry[str]) -> bool:
        if entry.is_dir(follow_symlinks=False):
            return entry.name in FOLDERS
        return declares(entry.path)

    folders: dict[str, str] = {}
    for argument in arguments:
        location = os.path.realpath(argument)
        folder = location if os.path.isdir(location) else os.path.dirname(location)
        root = _root(folder)
        if root is not None:
            # `rewrite src/train.py` has its setup.py in the root
            folders.update(dict.fromkeys(walk(root, exclude, in_root), root))
        if folder != location:
            continue
        # `rewrite experiments` has one at any depth, such as experiments/mnist/requirements.txt
        if not exclude.verdict(os.path.abspath(argument), is_directory=True):
            folders.update(dict.fromkeys(walk(folder, exclude, below), folder))
    files = [place for place in sorted(folders) if os.path.isfile(place)]
    return [Found(shown(place), place, folders[place]) for place in files]


def concerning(
    declaring: Sequence[Found], code: Iterable[Found], moved: Iterable[Found]
) -> list[Found]:
    """The declaring files whose folder has moved code below it.

    For a folder without code, such as `docker/`, the folder around it decides.
    """
    with_code = _folders(code)
    with_moved = _folders(moved)

    def concerns(file: Found) -> bool:
        around = upwards(os.path.dirname(file.location))
        return next((one for one in around if one in with_code), "") in with_moved

    return [file for file in declaring if concerns(file)]


def _folders(files: Iterable[Found]) -> set[str]:
    """All folders around some files."""
    inner = {os.path.dirname(file.location) for file in files}
    return {folder for one in inner for folder in upwards(one)}


def _root(folder: str) -> str | None:
    """The nearest folder, upwards, that looks like the root of a project."""
    for around in upwards(folder):
        with suppress(OSError):
            if any(map(MARKER.fullmatch, os.listdir(around))):
                return around
    return None
