"""The copies of a package in a project, found by the line of origin in their files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from codemods.messages import text_of
from codemods.model import FileResult, Site, Source
from optim2optax.project import (
    Found,
    Patterns,
    Root,
    UnreadableError,
    find_files,
    read_file,
    upwards,
)
from optim2optax.vendoring.content import Content

INIT = "__init__.py"


@dataclass(frozen=True)
class Copy:
    """A copy whose files are all among those of a run: the path of its folder, and the files.

    `package` is the name of what it is of.
    """

    path: str
    files: tuple[Source, ...]
    package: str

    def if_unneeded(
        self, results: Iterable[FileResult], root: Root, files: Iterable[Found]
    ) -> FileResult | None:
        """The result that says so if no file of the project names it."""
        name = self.path.rpartition("/")[2].encode()
        # import legacy_flax_optim, or its name in a text: either is a reason to stay
        if any(name in result.after for result in results):
            return None
        if any(name in text for text in _others(root.folder, files)):
            return None
        [init] = [one for one in self.files if one.path.endswith(f"/{INIT}")]
        return FileResult(
            init.path, init.content, init.content, (self._unneeded(init),)
        )

    def _unneeded(self, source: Source) -> Site:
        from codemods.rules import reasons

        reason = reasons.unneeded_copy(
            f"Nothing needs this copy of `{self.package}` any more.",
            "Delete its folder.",
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
            text_of(reason.reason),
            line,
            remedy=text_of(reason.remedy),
        )


def copies_among(sources: Sequence[Source], content: Content) -> list[Copy]:
    """The copies among the files of a run."""
    copies: list[Copy] = []
    for source in sources:
        if _begins_copy(source, content):
            # the package has no folders in it
            folder = _folder(source)
            files = [other for other in sources if _folder(other) == folder]
            copies.append(Copy(folder, tuple(files), content.package.name))
    return copies


def _folder(source: Source) -> str:
    return source.path.rpartition("/")[0]


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


def _begins_copy(source: Source, content: Content) -> bool:
    is_init = source.path.endswith(f"/{INIT}")
    return is_init and content.origin_of(source.content) == INIT


def _others(root: str, files: Iterable[Found]) -> Iterator[bytes]:
    """The contents of the project's files that are not among those of a run."""
    known = {file.location for file in files}
    for file in find_files([root], Patterns(root, ())):
        if file.location not in known:
            with contextlib.suppress(UnreadableError):
                yield read_file(file)
