"""The rest of the project that a file is of: it is read as context, and not written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from itertools import takewhile

from optim2optax.project.finding import Found, find_files, upwards
from optim2optax.project.patterns import NOTHING
from optim2optax.project.roots import is_package

MARKERS = (".git", "pyproject.toml")


def find_context(files: Iterable[Found], walked: Collection[str]) -> list[Found]:
    """All files of the projects that some files are of, found as in a run on these projects.

    Args:
      files: what was named.
      walked: the folders among it, in which nothing new is to be found.
    """
    roots = {_project(folder) for folder in {file.named for file in files}}
    outer = {os.path.realpath(folder) for folder in walked}
    new = [root for root in roots if root and outer.isdisjoint(upwards(root))]
    return [file._replace(is_context=True) for file in find_files(new, NOTHING)]


def _project(folder: str) -> str | None:
    """The nearest folder, upwards, with a marker; without one, the outermost package, if any.

    Neither is the home folder or the root of the disk: what is below these is no single project.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    around = [
        *takewhile(lambda one: one not in (home, os.path.dirname(one)), upwards(folder))
    ]
    for one in around:
        if any(os.path.exists(os.path.join(one, marker)) for marker in MARKERS):
            return one
    packages = [*takewhile(is_package, around)]
    return packages[-1] if packages else None
