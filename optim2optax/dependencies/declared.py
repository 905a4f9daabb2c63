"""The records of a file that declares dependencies: its requirements, findings and edits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from codemods.rules.dependencies import DIRECT, NOT_READ

Syntax = Literal["pep440", "poetry", "conda", "minor"]
"""How versions are written: `>=1,<2`, `^1.2`, `=1.2`, or `3.9`, a Python of any micro version."""

Span = tuple[int, int]


class TextEdit(NamedTuple):
    """A replacement for the text from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Finding:
    """A finding on a place in a file: `edits` resolve it, or it is left, with a `remedy`.

    `new` is the text after the edits, for people to read.
    """

    code: str
    span: Span
    message: str
    edits: tuple[TextEdit, ...] = ()
    new: str | None = None
    remedy: str | None = None
    note: str = ""


@dataclass(frozen=True)
class DeclaredRequirement:
    """A requirement as it stands in a file.

    Attributes:
      name: the normalized name; Python itself is `python`.
      span: all of it, with its quotes.
      version: the part with the versions; empty, behind the name, if it has none.
      spec: the text of that part.
      gap: the text between the name and the version.
      extras: the extras as they are written, with their place.
      syntax: how the versions are written.
      whole_range: whether a solution must be right for each admitted version. Tools that lock
        demand that for the Python of a project.
      bare: whether it has no quotes where `>` has another meaning, and gets them with a version.
      is_hashed: whether it has hashes, which are those of one version.
      behind: adds one of a name and a version, which may be empty, behind it; None if it cannot.
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
    behind: Callable[[str, str], TextEdit] | None = None


Read = DeclaredRequirement | Finding
"""A requirement, or the finding that it is not understood."""


@dataclass(frozen=True)
class Section:
    """Requirements that are installed together.

    Other sections of a file need not repeat the requirements of its `base`. Nothing is added to
    constraints.
    """

    read: tuple[Read, ...]
    base: bool = False
    are_constraints: bool = False

    @property
    def declared(self) -> list[DeclaredRequirement]:
        """The requirements that are understood."""
        return [one for one in self.read if isinstance(one, DeclaredRequirement)]

    def has(self, name: str) -> bool:
        """Whether it has a requirement of a name."""
        return any(declared.name == name for declared in self.declared)


@dataclass(frozen=True)
class Declarations:
    """All that a file declares.

    Attributes:
      sections: its requirements.
      others: the findings beside them of reading it.
      includes: the paths of the files that it includes.
      told: the requirements of a file that is not edited.
      command: the command that makes a lock file; empty for any other file.
      is_whole: whether what is told is all that the code needs.
    """

    sections: tuple[Section, ...] = ()
    others: tuple[Finding, ...] = ()
    includes: tuple[str, ...] = ()
    told: tuple[DeclaredRequirement, ...] = ()
    command: str = ""
    is_whole: bool = True

    @property
    def problems(self) -> list[Finding]:
        """The findings of reading it."""
        read = chain(self.others, *(section.read for section in self.sections))
        return [one for one in read if isinstance(one, Finding)]


class FormatError(ValueError):
    """A file cannot be read in its format; `line` is where, from 1."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def not_read(span: Span, why: str, remedy: str = "Look after it by hand.") -> Finding:
    """The finding that a requirement is left because it is not understood."""
    return Finding(NOT_READ, span, why, remedy=remedy)


def direct(span: Span, name: str) -> Finding:
    """The finding that a requirement names a place instead of a version."""
    return Finding(
        DIRECT,
        span,
        f"`{name}` comes from a place of its own, whose version is not known here.",
        remedy="See that it has the version that the new code needs, or require a release.",
    )
