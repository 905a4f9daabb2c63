"""What every edit knows of its own consequences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Protocol, TypeVar

from codemods.optimizers.base import Support
from codemods.sources.modules import Span, Unit

EditT = TypeVar("EditT", bound="Edit")

IT = "{it}"
"""The hole for what an edit is about."""

Holes = tuple[tuple[str, Span], ...]

PLACEHOLDER = re.compile(r"\{(\w+)\}")
HOLE = re.compile(r"\{[^{}]*\}")
ROOT = re.compile(r"(?<![\w.])[^\W\d]\w*")
"""A word that is not an attribute."""


class Place(Protocol):
    """The construct that an edit is made for: a use, of which `analysis.uses` has the record."""

    @property
    def unit(self) -> Unit: ...
    @property
    def node(self) -> ast.expr | ast.stmt: ...
    @property
    def said(self) -> tuple[ast.expr, ...]: ...


@dataclass(frozen=True)
class Made:
    """What is to be known of the optax form that an edit makes of a definition.

    `injects` says that the learning rate is set at each step, `schedule` has the source text of a
    schedule in the place of such rates. `link` is the source text of what comes first in the chain,
    for what stood beside the definition.
    """

    injects: bool = False
    schedule: str = ""
    link: str = ""


@dataclass(frozen=True)
class Edit:
    """A change of the source at `span`.

    The rest are its consequences, with the defaults for an edit that has none.
    """

    span: Span

    @property
    def holes(self) -> Holes:
        """The pieces of the source that it puts elsewhere, by name."""
        return ()

    @property
    def supports(self) -> tuple[Support, ...]:
        """The helpers that its templates name."""
        return ()

    @property
    def needs(self) -> set[str]:
        """The keys of `analysis.names.CHOICES`, among others, that its templates name."""
        return placeholders(self.texts)

    @property
    def words(self) -> list[str]:
        """The words of source text that it may put into the file as they are."""
        return [
            word for text in self.texts for word in ROOT.findall(HOLE.sub("it", text))
        ]

    @property
    def texts(self) -> Iterator[str]:
        """All its texts, those of its parts included."""
        return _texts(self)

    def gone(self, place: Place) -> Iterable[ast.AST]:
        """The nodes that are not in the file any more."""
        del place
        return ()

    @property
    def removes(self) -> bool:
        """Whether nothing takes the place of what it is about."""
        return False

    def merged(self, other: Edit) -> Edit | None:
        """One edit that does what two of the same place do; None if they do not go together."""
        return self if self == other else None

    @property
    def note(self) -> str:
        """What the report says of the site."""
        return ""

    @property
    def made(self) -> Made:
        """What it makes of a definition."""
        return Made()


@dataclass(frozen=True)
class Keep:
    """Nothing to edit: the construct is valid as it stands once the rest has changed."""


def joined(first: EditT, second: Edit) -> EditT | None:
    """One edit with all that two of one kind have in their tuples; None for different kinds."""
    if type(first) is not type(second):
        return None
    both: dict[str, Any] = {}
    for name, ours in vars(first).items():
        if name == "span" or not isinstance(ours, tuple):
            continue
        theirs = vars(second)[name]
        both[name] = tuple(dict.fromkeys((*ours, *theirs)))
    return replace(first, **both)


def placeholders(texts: Iterable[str]) -> set[str]:
    """The names in braces in some templates."""
    return {match[1] for text in texts for match in PLACEHOLDER.finditer(text)}


def expressions_within(node: ast.AST) -> Iterator[ast.expr]:
    """An expression, and all that it is made of."""
    return (part for part in ast.walk(node) if isinstance(part, ast.expr))


def _texts(part: object) -> Iterator[str]:
    """All texts within an edit, or within a part of it, but names of holes."""
    if isinstance(part, str):
        yield part
    parts: Iterable[object] = ()
    if isinstance(part, tuple):
        parts = part
    elif is_dataclass(part) and not isinstance(part, Support):
        parts = (inner for name, inner in vars(part).items() if name != "holes")
    for inner in parts:
        yield from _texts(inner)
