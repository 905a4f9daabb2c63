"""The copies of `flax.optim` that a project has: told by the line of origin in their files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codemods.model import FileResult, Site, Source

from optim2optax.project import Found, Patterns, UnreadableError, find_files, read_file
from optim2optax.vendoring.content import is_as_written, origin_of

INIT = "__init__.py"
CACHE = "__pycache__"


@dataclass(frozen=True)
class Copy:
    """A copy whose files are all among those of a run: the path of its folder, and the files."""

    path: str
    files: tuple[Source, ...]

    @property
    def name(self) -> str:
        """What it is imported as."""
        return self.path.rpartition("/")[2]

    def if_unneeded(
        self, results: Iterable[FileResult], root: str, files: Mapping[Found, str]
    ) -> Iterator[FileResult]:
        """Its files, deleted, if no file of the project names it; if one was changed or added, none is, and this is told."""
        name = self.name.encode()
        if any(name in result.after for result in results) or any(
            name in text for text in _others(root, files)
        ):
            return
        changed = self._changed(os.path.join(root, self.path))
        for source in self.files:
            if not changed:
                yield FileResult(source.path, source.content, b"", kind="deleted")
            elif source.path.endswith(f"/{INIT}"):
                yield FileResult(
                    source.path, source.content, source.content, (_kept(source, changed),)
                )

    def _changed(self, folder: str) -> list[str]:
        """What is in the folder that was not put there, or not so."""
        known = {
            source.path.rpartition("/")[2] for source in self.files if is_as_written(source.content)
        }
        return sorted(
            {*os.listdir(folder), *(source.path.rpartition("/")[2] for source in self.files)}
            - known
            - {CACHE}
        )


def copies_among(sources: Sequence[Source]) -> list[Copy]:
    """The copies whose files are among some."""
    folders = (
        source.path.rpartition("/")[0]
        for source in sources
        if _begins_copy(source.path, source.content)
    )
    return [
        Copy(
            folder, tuple(source for source in sources if source.path.rpartition("/")[0] == folder)
        )
        for folder in folders
    ]


def copies_near(root: str, folders: Collection[str]) -> set[str]:
    """The paths of the copies in some folders, and in those around them up to the root of the project."""
    around = {outer for folder in folders for outer in _up_to(root, folder)}
    found = set()
    for folder in around:
        with contextlib.suppress(OSError):
            found |= {
                os.path.join(folder, name)
                for name in os.listdir(folder)
                if _is_copy(os.path.join(folder, name))
            }
    return {os.path.relpath(location, root).replace(os.sep, "/") for location in found}


def packages_around(root: str, files: Iterable[Found]) -> list[str]:
    """The paths of what makes packages of the folders around some files, whether it is among these or not."""
    folders = {
        outer
        for folder in {os.path.dirname(file.location) for file in files}
        for outer in _up_to(root, folder)
    }
    inits = [
        os.path.join(folder, INIT)
        for folder in sorted(folders)
        if os.path.isfile(os.path.join(folder, INIT))
    ]
    return [os.path.relpath(location, root).replace(os.sep, "/") for location in inits]


def _up_to(root: str, folder: str) -> Iterator[str]:
    while folder.startswith(root):
        yield folder
        if folder in (root, os.path.dirname(folder)):
            return
        folder = os.path.dirname(folder)


def _is_copy(folder: str) -> bool:
    location = os.path.join(folder, INIT)
    try:
        if not os.path.isfile(location):
            return False
        with open(location, "rb") as file:
            return origin_of(file.read()) == INIT
    except OSError:
        return False


def _begins_copy(path: str, content: bytes) -> bool:
    return path.endswith(f"/{INIT}") and origin_of(content) == INIT


def _others(root: str, files: Mapping[Found, str]) -> Iterator[bytes]:
    """What is in the files of the project that a run is not about."""
    known = {file.location for file in files}
    for file in find_files([root], Patterns(root, ())):
        if file.location not in known:
            with contextlib.suppress(UnreadableError):
                yield read_file(file)


def _kept(source: Source, changed: Sequence[str]) -> Site:
    from codemods.rules import reasons

    what = ", ".join(changed)
    reason = reasons.changed_copy(
        f"Nothing needs this copy of `flax.optim` any more, but it is not as it was written: {what}.",
        "Delete the folder if what was changed in it is not needed.",
    )
    line = source.content.decode("utf-8", "replace").splitlines()[0]
    return Site(
        reason.code,
        1,
        1,
        1,
        len(line) + 1,
        "unresolved",
        "proven",
        reason.reason,
        line,
        remedy=reason.remedy,
    )
