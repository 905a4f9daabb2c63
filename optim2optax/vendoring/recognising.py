"""The copies of a package in a project, found by the line of origin in their files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable

from optim2optax.project import Found, Root, upwards
from optim2optax.vendoring.content import Content

INIT = "__init__.py"


def copies_near(root: Root, folders: Collection[str], content: Content) -> set[str]:
    """The paths of the copies in some folders, and in those around them in the project."""
    found: set[str] = set()
    for folder in _around(root.folder, folders):
        with contextlib.suppress(OSError):
            locations = [os.path.join(folder, name) for name in os.listdir(folder)]
            found.update(one for one in locations if _is_copy(one, content))
    return {root.path(location) for location in found}


def packages_around(root: Root, files: Iterable[Found]) -> list[str]:
    """The paths of the `__init__.py` around some files, whether they are among these or not."""
    own = {os.path.dirname(file.location) for file in files}
    folders = _around(root.folder, own)
    inits = [os.path.join(folder, INIT) for folder in sorted(folders)]
    return [root.path(location) for location in inits if os.path.isfile(location)]


def _around(root: str, folders: Collection[str]) -> set[str]:
    """Some folders and those around them, up to the root of the project."""
    around = (outer for folder in folders for outer in upwards(folder))
    return {outer for outer in around if outer.startswith(root)}


def _is_copy(folder: str, content: Content) -> bool:
    location = os.path.join(folder, INIT)
    try:
        if not os.path.isfile(location):
            return False
        with open(location, "rb") as file:
            return content.origin_of(file.read()) == INIT
    except OSError:
        return False
