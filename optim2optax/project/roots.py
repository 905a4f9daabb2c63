"""The root of a project, from which the paths of its modules go."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from optim2optax.project.finding import Found, posix, upwards

MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
INIT = "__init__.py"
WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*")
"""A word of a folder's name: `pkg` of `pkg-main`, or of `owner__pkg`."""

IMPORT = r"""\bfrom[ \t]+{0}(?P<source>(?:\.\w+)*)[ \t]+import[ \t]*(?P<members>\([^)]*\)|[\w \t,]+)
|\bimport[ \t]+{0}\.(?P<module>\w+(?:\.\w+)*)"""
"""An import from a package of some name."""

ALIAS = re.compile(rb"#[^\r\n]*|\bas\s+\w+")
"""What stands between the names of an import, and is none of them."""


@dataclass(frozen=True)
class Root:
    """The folder of a project, and what imports call it if it is a package itself."""

    folder: str
    package: str = ""

    def path(self, location: str) -> str:
        """The path of a file or folder by which its module is named."""
        inner = posix(os.path.relpath(location, self.folder))
        return f"{self.package}/{inner}" if self.package else inner

    def location(self, path: str) -> str:
        """The absolute path of such a path."""
        steps = path.removeprefix(self._prefix).split("/")
        return os.path.join(self.folder, *steps)

    def is_around(self, path: str) -> bool:
        """Whether a path is one in the folder: what is beside the package itself is not."""
        return path.startswith(self._prefix)

    @cached_property
    def _prefix(self) -> str:
        return f"{self.package}/" if self.package else ""


def root_of(contents: Mapping[Found, bytes], repository: str = "") -> Root:
    """The root of the project of some files.

    It is the nearest folder around them with a marker such as `pyproject.toml`; without one, the
    folder that was named, or that of the outermost package around it. It is in the repository of
    the files, if that is given. It does not depend on where the command is run.
    """
    # both are around the file: the longer one is the inner one
    named = os.path.commonpath(
        [max(one.named, repository, key=len) for one in contents]
    )
    marked = next(filter(_has_marker, upwards(named)), None)
    folder = marked or _outermost(named)
    package = _package(folder, contents)
    # src/kit/models is imported as kit.models, from src
    if not marked and not package and is_package(folder):
        folder = os.path.dirname(folder)
    return Root(folder, package)


def _has_marker(directory: str) -> bool:
    places = (os.path.join(directory, marker) for marker in MARKERS)
    return any(map(os.path.exists, places))


def _outermost(directory: str) -> str:
    """The outermost package around a folder, or the folder."""
    while is_package(os.path.dirname(directory)):
        directory = os.path.dirname(directory)
    return directory


def is_package(directory: str) -> bool:
    """Whether a folder is a package."""
    return os.path.exists(os.path.join(directory, INIT))


def _package(folder: str, contents: Mapping[Found, bytes]) -> str:
    """What imports call a folder that is a package itself; empty for any other folder.

    That is its name, or a word of it, by which all imports find what they name. Where its
    `__init__.py` says that it is one, a module may be missing.
    """
    own = os.path.basename(folder)
    init = _read(os.path.join(folder, INIT))
    words: list[str] = WORD.findall(own)
    # a copy of `pkg` in `pkg-main`
    for word in dict.fromkeys((own, *words)):
        names = _imported(word, contents)
        # from pkg import models, where that is the folder pkg/pkg
        if not names or _is_in(folder, b"", word):
            continue
        found = [_is_in(folder, init or b"", name) for name in names]
        if all(found) or (word == own and init is not None and any(found)):
            return word
    return ""


def _read(file: str) -> bytes | None:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError:
        return None


def _imported(package: str, contents: Mapping[Found, bytes]) -> set[str]:
    """What files import from a package, by the names below it: `models.vit`, or `VERSION`."""
    pattern = re.compile(IMPORT.format(re.escape(package)).encode(), re.VERBOSE)
    names: set[bytes] = set()
    for content in contents.values():
        # most files do not have the name anywhere
        if package.encode() not in content:
            continue
        for found in pattern.finditer(content):
            # import pkg.models, or from pkg.models import vit
            module = found["module"] or found["source"]
            # from pkg import models, VERSION as version
            members = re.findall(rb"\w+", ALIAS.sub(b"", found["members"] or b""))
            names.update([module] if module else members)
    return {name.decode("utf-8", "replace").lstrip(".") for name in names}


def _is_in(folder: str, init: bytes, name: str) -> bool:
    """Whether a name is that of a module in a package, or of what its `__init__.py` has."""
    place = os.path.join(folder, *name.split("."))
    if os.path.isdir(place) or os.path.isfile(f"{place}.py"):
        return True
    return re.search(rf"\b{re.escape(name)}\b".encode(), init) is not None
