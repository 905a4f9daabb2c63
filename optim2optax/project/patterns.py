"""Patterns in the syntax of .gitignore."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

GITIGNORE = ".gitignore"


class PatternError(ValueError):
    """A pattern does not follow the syntax of .gitignore."""


class Patterns:
    """Patterns that apply from a folder (`base`, absolute) downwards."""

    def __init__(self, base: str, lines: Iterable[str]) -> None:
        """Raises PatternError for a line that is not a pattern."""
        self.base = base
        lines = list(lines)
        self._spec: GitIgnoreSpec | None = _compile(lines) if lines else None

    def verdict(self, location: str, *, is_directory: bool = False) -> bool | None:
        """True: excluded. False: explicitly kept (`!pattern`). None: no pattern matches it."""
        if self._spec is None:
            return None
        relative = os.path.relpath(location, self.base).replace(os.sep, "/")
        if is_directory:  # the pattern `build/` matches only folders
            relative += "/"
        return self._spec.check_file(relative).include


NOTHING = Patterns(os.curdir, ())


def read_gitignore(directory: str) -> list[Patterns]:
    """The patterns of a folder's own .gitignore, if it has one, as one element.

    Lines that are not patterns are skipped.
    """
    path = os.path.join(directory, GITIGNORE)
    if not os.path.isfile(path):  # a link to a device might not end
        return []
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    return [Patterns(directory, [line for line in lines if _is_pattern(line)])]


def is_ignored(
    ignores: Iterable[Patterns], location: str, *, is_directory: bool
) -> bool:
    """Whether the innermost .gitignore with a pattern for a path excludes it.

    `ignores` go from the outermost inwards.
    """
    for patterns in reversed(list(ignores)):
        verdict = patterns.verdict(location, is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False


def _compile(lines: Iterable[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error) as error:
        raise PatternError(str(error)) from error


def _is_pattern(line: str) -> bool:
    try:
        _compile([line])
    except PatternError:
        return False
    return bool(line.strip()) and not line.startswith("#")
