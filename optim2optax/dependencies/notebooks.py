"""The `!pip install` and `%pip install` of notebooks."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from codemods.sources.notebook import code_cells, string_extents
from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    FormatError,
    Insert,
    Section,
    Span,
    TextEdit,
)
from optim2optax.dependencies.shell import installs

LETTER = re.compile(r'\\u[0-9a-fA-F]{4}|\\.|[^\\"]')
COMMAND = re.compile(
    r"^[ \t]*[!%](?!%)(?:[^\\\r\n]|\\[ \t]*(?:\r\n|\n)|\\.)*", re.MULTILINE
)
SCRIPT = re.compile(r"%%(?:bash|sh|shell|script (?:ba)?sh)\b")


def read(text: str, path: str) -> Declarations:
    """What a notebook installs. Raises UnreadableError."""
    del path
    try:
        json.loads(text)
        sources = [extent for _, _, extent in code_cells(text)]
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise FormatError(f"cannot be read as a notebook: {error}", 1) from error
    sections: list[Section] = []
    problems: list[Finding] = []
    for extent in sources:
        cell = _Cell(text, extent)
        for start, end in _commands(cell.source):
            for section, unread in installs(cell.source, start, end):
                sections.append(cell.placed(section))
                problems += [
                    replace(problem, span=cell.place(problem.span))
                    for problem in unread
                ]
    return Declarations(tuple(sections), tuple(problems), written=_written)


def _commands(source: str) -> list[Span]:
    """The commands of a shell in a cell."""
    if SCRIPT.match(source):  # %%bash: the whole cell is one
        return [(0, len(source))]
    return [found.span() for found in COMMAND.finditer(source)]


class _Cell:
    """The source of a cell, and where each character of it stands in the file."""

    def __init__(self, text: str, extent: Span) -> None:
        letters: list[re.Match[str]] = []
        for inner in string_extents(text, extent):
            letters += LETTER.finditer(text, *inner)
        # one character of the source may be several of JSON: \n, \u00e4
        self.source = "".join(map(_read, letters))
        self.starts = [found.start() for found in letters]
        self.ends = [found.end() for found in letters]

    def place(self, span: Span) -> Span:
        """Where a part of the source stands in the file."""
        start, end = span
        if start < end:
            return self.starts[start], self.ends[end - 1]
        # a place between characters, where something is added
        behind = self.ends[start - 1]
        return behind, behind

    def placed(self, section: Section) -> Section:
        """A section of the source, with the places in the file."""
        places = {self._placed(declared): declared for declared in section.declared}
        insert = section.insert
        assert insert is not None
        return replace(
            section, declared=tuple(places), insert=self._inserting(insert, places)
        )

    def _placed(self, declared: DeclaredRequirement) -> DeclaredRequirement:
        extras = declared.extras
        if extras:
            written, span = extras
            extras = (written, self.place(span))
        return replace(
            declared,
            span=self.place(declared.span),
            version=self.place(declared.version),
            extras=extras,
        )

    def _inserting(
        self, insert: Insert, places: dict[DeclaredRequirement, DeclaredRequirement]
    ) -> Insert:
        def inserted(
            anchor: DeclaredRequirement, name: str, version: str
        ) -> TextEdit | None:
            edit = insert(places[anchor], name, version)
            return edit and TextEdit(*self.place((edit.start, edit.end)), edit.text)

        return inserted


def _read(letter: re.Match[str]) -> str:
    """The character that a piece of a string of JSON stands for."""
    written = letter[0]
    return written if len(written) == 1 else json.loads(f'"{written}"', strict=False)


def _written(text: str) -> str:
    """Text as it stands within a string of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
