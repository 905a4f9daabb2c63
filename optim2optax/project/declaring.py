"""Which files may declare the dependencies of what a run is about."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

from optim2optax.project.finding import ALWAYS_SKIPPED, Found, shown, walk
from optim2optax.project.patterns import Patterns

MARKER = re.compile(r"\.git|pyproject\.toml|setup\.(?:py|cfg)|requirements.*\.txt")
FOLDER = "requirements"
"""Beside the folders that are named, the root of their project is looked into, and its folder of this name."""


def find_declaring(
    arguments: Iterable[str], exclude: Patterns, declares: Callable[[str], bool]
) -> list[Found]:
    """The files that `declares` takes by their paths, in an order that does not depend on that of the arguments."""

    def below(entry: os.DirEntry[str]) -> bool:
        return (
            entry.name not in ALWAYS_SKIPPED
            if entry.is_dir(follow_symlinks=False)
            else declares(entry.path)
        )

    def in_root(entry: os.DirEntry[str]) -> bool:
        return entry.name == FOLDER if entry.is_dir(follow_symlinks=False) else declares(entry.path)

    places: dict[str, str] = {}
    for argument in arguments:
        location = os.path.realpath(argument)
        folder = location if os.path.isdir(location) else os.path.dirname(location)
        root = _root(folder)
        if root is not None:
            places.update(dict.fromkeys(walk(root, exclude, in_root), root))
        if folder == location and not exclude.verdict(os.path.abspath(argument), is_directory=True):
            places.update(dict.fromkeys(walk(folder, exclude, below), folder))
    return [
        Found(shown(place), place, places[place])
        for place in sorted(places)
        if os.path.isfile(place)
    ]


def concerning(
    declaring: Sequence[Found], code: Iterable[Found], moved: Iterable[Found]
) -> list[Found]:
    """Those that declare the dependencies of code that has moved: it is below their folder.

    Of a folder without code, such as `docker/`, the folder around it is asked.
    """
    with_code, with_moved = _folders(code), _folders(moved)

    def concerns(file: Found) -> bool:
        folder = os.path.dirname(file.location)
        while folder not in with_code and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        return folder in with_moved

    return [file for file in declaring if concerns(file)]


def _folders(files: Iterable[Found]) -> set[str]:
    """All folders that files are below."""
    folders: set[str] = set()
    for file in files:
        folder = os.path.dirname(file.location)
        while folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    return folders


def _root(folder: str) -> str | None:
    """The nearest folder, upwards, that looks like the root of a project."""
    while True:
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
        if any(map(MARKER.fullmatch, names)):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
