"""Where a page shows a place: the name of its file, and the link to its line."""

from __future__ import annotations

import os.path
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from codemods.model import FileResult, Location

AROUND = 3
"""The number of lines that are shown around one that matters."""

PASSING = 1
"""The same for a line that an optimizer only passes."""


class Link(NamedTuple):
    """A place as people read it, and the fragment of the page; that is empty if it is not shown."""

    text: str
    target: str


class PageLinks:
    """The files of a report by what the page calls them, and the lines that it shows of each."""

    def __init__(self, results: Sequence[FileResult]) -> None:
        self.root = _root([result.path for result in results])
        self._indices: dict[str, int] = {}
        for index, result in enumerate(results):
            self._indices.setdefault(result.path, index)
        self._wanted: dict[str, dict[int, int]] = defaultdict(dict)
        for result in results:
            for site in result.sites:
                is_left = site.status in ("unresolved", "vendored")
                around = AROUND if is_left else PASSING
                self._want(Location(result.path, site.line), around)
                # the page links to these, from the site
                self._want_all((site.group, site.cause, *site.way))

    def _want_all(self, locations: Iterable[Location | None]) -> None:
        for location in locations:
            if location is not None:
                self._want(location, PASSING)

    def _want(self, location: Location, around: int) -> None:
        # the page has only the files of the report
        if location.path in self._indices:
            lines = self._wanted[location.path]
            lines[location.line] = max(around, lines.get(location.line, 0))

    def wanted(self, path: str) -> Mapping[int, int]:
        """The lines of a file that are shown, each with the number of lines around it."""
        return self._wanted[path]

    def anchors(self, path: str) -> dict[int, str]:
        """The names of the lines of a file that may be linked to."""
        return {line: self._name(Location(path, line)) for line in self._wanted[path]}

    def file(self, path: str) -> Link:
        """The link to a file."""
        return Link(self.short(path), f"f{self._indices[path]}")

    def line(self, location: Location) -> Link:
        """The link to a line."""
        text = f"{self.short(location.path)}:{location.line}"
        is_shown = location.line in self._wanted.get(location.path, ())
        return Link(text, self._name(location) if is_shown else "")

    def number(self, location: Location) -> Link:
        """The same, with the number of the line alone as its text."""
        return Link(str(location.line), self.line(location).target)

    def short(self, path: str) -> str:
        """A path from the folder around all files on."""
        return path.removeprefix(self.root)

    def text(self, message: str) -> str:
        """A message, in which paths are from that folder on, too."""
        return message.replace(self.root, "") if self.root else message

    def _name(self, location: Location) -> str:
        return f"f{self._indices[location.path]}-{location.line}"


def _root(paths: Sequence[str]) -> str:
    """The folder around all files, with `/` at its end; empty if that is the current one."""
    folders = [path.rpartition("/")[0] for path in paths]
    # a file in the current folder has no folder in its path
    if not folders or not all(folders):
        return ""
    try:
        common = os.path.commonpath(folders).replace(os.sep, "/")
    except ValueError:  # absolute and relative ones
        return ""
    return f"{common}/" if common else ""
