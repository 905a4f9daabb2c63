"""Which files a run looks at."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from codemods.vocabulary import words
from optim2optax.project.patterns import Patterns, is_ignored, read_gitignore
from optim2optax.wording import printable

SUFFIXES = (".py", ".ipynb")
ALWAYS_SKIPPED = frozenset(
    words(
        ".bzr .direnv .eggs .git .git-rewrite .hg .ipynb_checkpoints .mypy_cache .nox .pants.d "
        ".pyenv .pytest_cache .pytype .ruff_cache .svn .tox .venv .vscode __pycache__ "
        "__pypackages__ _build buck-out build dist node_modules site-packages venv"
    )
)
"""The folders that hold no code of the project itself."""

EXCLUDED = "left out by --exclude or `exclude`"
BY_NAME = "left out: folders of this name hold no code of the project itself"

Keep = Callable[["os.DirEntry[str]"], bool]
"""Whether an entry of a folder is looked at: a file, or the contents of a folder."""

LeftOut = dict[str, str]
"""Gets the paths of files and folders that are left out, with the reasons."""


class Found(NamedTuple):
    """A file to look at.

    Attributes:
      path: the path for people to read.
      location: the absolute path of the file, links resolved.
      named: the absolute path of the folder by which it was named, or of its own folder.
      is_context: whether it was not named, and is read for the sake of the files that were.
    """

    path: str
    location: str
    named: str
    is_context: bool = False


def find_files(
    arguments: Iterable[str], exclude: Patterns, left_out: LeftOut | None = None
) -> list[Found]:
    """The files that the arguments name, each once, sorted.

    A file is taken whatever its name, unless `exclude` excludes it. A directory is walked for
    `*.py` and `*.ipynb`, without those that .gitignore, `exclude` and ALWAYS_SKIPPED leave out;
    links that lead out of it are not followed. A directory that cannot be listed is an element
    itself: reading it says why. `left_out` gets what is left out.
    """
    locations: dict[str, str] = {}
    for argument in arguments:
        location = os.path.abspath(argument)
        if exclude.verdict(location, is_directory=os.path.isdir(location)):
            if left_out is not None:
                left_out[location] = EXCLUDED
            continue
        root = os.path.realpath(location)
        is_directory = os.path.isdir(root)
        named = root if is_directory else os.path.dirname(root)
        files = walk(root, exclude, _is_code, left_out) if is_directory else (root,)
        for file in files:
            # `rewrite src src/kit` names a file twice: the outer folder counts
            if file not in locations or len(named) < len(locations[file]):
                locations[file] = named
    return [
        Found(shown(location), location, locations[location])
        for location in sorted(locations)
    ]


def by_repository(found: Iterable[Found]) -> dict[str, list[Found]]:
    """Files by the folder of the outermost repository around each.

    So submodules belong to the repository around them. Files outside of any repository are
    together, under an empty name.
    """
    repository = repository_finder()
    files: dict[str, list[Found]] = {}
    for file in found:
        folder = file.location.rpartition(os.sep)[0]
        files.setdefault(repository(folder or os.sep), []).append(file)
    return files


def repository_finder() -> Callable[[str], str]:
    """A function that gives the outermost repository around a folder, or an empty text."""

    @cache
    def repository(folder: str) -> str:
        parent = os.path.dirname(folder)
        found = repository(parent) if parent != folder else ""
        if not found and os.path.exists(os.path.join(folder, ".git")):
            found = folder
        return found

    return repository


def shown(location: str) -> str:
    """A path as people read it: from the current folder on, with `/`, and printable."""
    # relative to the current folder, wherever it is: ../src/train.py, or ../..
    try:
        path = os.path.relpath(location)
    except ValueError:  # another drive
        path = location
    if os.sep == "/" and path.isprintable():
        return path
    return printable(posix(os.fsencode(path).decode("utf-8", "replace")))


def walk(
    root: str, exclude: Patterns, keep: Keep, left_out: LeftOut | None = None
) -> Iterator[str]:
    """The files below a folder that `keep` selects, in the folders that it selects.

    Those that .gitignore and `exclude` leave out are not among them.
    """
    folders = [(root, _outer_ignores(root))]
    while folders:
        folder, ignores = folders.pop()
        try:
            with os.scandir(folder) as entries:
                children = list(entries)
        except OSError:  # reading the folder as a file gives the error
            yield folder
            continue
        ignores = [*ignores, *read_gitignore(folder)]
        for entry in children:
            is_folder = entry.is_dir(follow_symlinks=False)
            why = None
            if not keep(entry):
                # a file that is no code needs no reason, and neither does .git
                is_told = is_folder and not entry.name.startswith(".")
                why = BY_NAME if is_told else ""
            elif exclude.verdict(entry.path, is_directory=is_folder):
                why = EXCLUDED
            elif ignores and is_ignored(ignores, entry.path, is_directory=is_folder):
                why = "left out by .gitignore"
            if why is not None:
                if why and left_out is not None:
                    left_out[entry.path] = why
            elif is_folder:
                if not _is_junction(entry):
                    folders.append((entry.path, ignores))
            elif not entry.is_symlink():
                # the path of its folder is a real one, and so is its own
                if entry.is_file():
                    yield entry.path
            else:
                location = os.path.realpath(entry.path)
                is_within = os.path.commonpath([root, location]) == root
                if os.path.isfile(location) and is_within:
                    yield location


def _is_code(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir(follow_symlinks=False):
        return entry.name not in ALWAYS_SKIPPED
    return entry.name.endswith(SUFFIXES)


def _is_junction(folder: os.DirEntry[str]) -> bool:
    """Whether a folder is a link of Windows that is no symbolic one."""
    return sys.platform == "win32" and os.path.realpath(folder.path) != folder.path


def _outer_ignores(root: str) -> list[Patterns]:
    """The .gitignore files above a folder, up to its repository.

    Those that ignore the folder are left out, because the user has named it.
    """
    found: list[Patterns] = []
    for folder in upwards(root):
        if folder != root:
            # the outermost comes first
            found[:0] = read_gitignore(folder)
        if os.path.exists(os.path.join(folder, ".git")):
            return [one for one in found if not one.verdict(root, is_directory=True)]
    return []


def upwards(folder: str) -> Iterator[str]:
    """A folder and those around it, the innermost first."""
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        yield folder


def posix(path: str) -> str:
    """A path with `/` between its steps."""
    return path.replace(os.sep, "/")
