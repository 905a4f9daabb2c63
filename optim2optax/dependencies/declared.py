"""What is found in a file that declares dependencies, as places in its text, and what is to become of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from codemods.rules.dependencies import DIRECT, HASHED, NOT_READ

Syntax = Literal["pep440", "poetry", "conda", "minor"]
"""How versions are written: `>=1,<2`, `^1.2`, `=1.2`, or `3.9`, which is a Python of any micro version."""

Span = tuple[int, int]


class Edit(NamedTuple):
    """Text that takes the place of what is from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Finding:
    """Something to be said of a place in a file: done by `edits`, or left, with a `remedy`.

    `new` is what stands there afterwards, for people to read.
    """

    code: str
    span: Span
    message: str
    edits: tuple[Edit, ...] = ()
    new: str | None = None
    remedy: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Declared:
    """A requirement as it stands in a file.

    `name` is normalized; Python itself is `python`. `span` is all of it, with its quotes, `version` what says which versions
    (empty, behind the name, if nothing does), and `gap` stands between the two. `whole_range` says that a solution must hold for
    each version that is admitted, which is so of the Python of a project for those tools that lock. A requirement without quotes
    (`bare`) where `>` means something else gets quotes with a version. What has hashes (`is_hashed`) is of one version.
    """

    name: str
    span: Span
    version: Span
    spec: str = ""
    gap: str = ""
    extras: tuple[str, Span] | None = None
    syntax: Syntax = "pep440"
    whole_range: bool = False
    bare: bool = False
    is_hashed: bool = False


Insert = Callable[[Declared, str, str], Edit | None]
"""Puts a requirement of a name, and of a version if any, behind another one; None if there is no way to."""


@dataclass(frozen=True)
class Section:
    """Requirements that are installed together. What the `base` of a file has, its other sections need not have."""

    declared: tuple[Declared, ...]
    insert: Insert | None = None
    base: bool = False


def _nothing(needs: Mapping[str, str]) -> Iterable[Finding]:
    del needs
    return ()


@dataclass(frozen=True)
class Reading:
    """All that a file declares, what is wrong with it, the files that it includes, and how text is written in it.

    `too_old` tells what else is below the lowest versions that it is given.
    """

    sections: tuple[Section, ...] = ()
    problems: tuple[Finding, ...] = ()
    includes: tuple[str, ...] = ()
    written: Callable[[str], str] = str
    too_old: Callable[[Mapping[str, str]], Iterable[Finding]] = _nothing


class UnreadableError(ValueError):
    """A file cannot be read as what it is; `line` is where, from 1."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def not_read(span: Span, why: str, remedy: str = "Look after it by hand.") -> Finding:
    """Something that is left because it is not understood."""
    return Finding(NOT_READ, span, why, remedy=remedy)


def direct(span: Span, name: str) -> Finding:
    """A requirement that names a place instead of a version."""
    return Finding(
        DIRECT,
        span,
        f"`{name}` comes from a place of its own, whose version is not known here.",
        remedy="See that it has the version that the new code needs, or require a release.",
    )


def hashed(span: Span, name: str) -> Finding:
    """A requirement that would have other hashes in another version."""
    return Finding(
        HASHED,
        span,
        f"`{name}` has hashes of a version.",
        remedy="Raise the version and renew the hashes.",
    )
