"""The `!pip install` and `%pip install` of notebooks."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from codemods.sources.notebook import Lines, code_cells, decoded
from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    FormatError,
    Read,
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
        sources = [lines for _, lines in code_cells(decoded(text))]
    except (ValueError, RecursionError) as error:
        raise FormatError(f"cannot be read as a notebook: {error}", 1) from error
    sections: list[Section] = []
    for lines in sources:
        cell = _Cell(text, lines)
        for start, end in _commands(cell.source):
            sections += map(cell.placed, installs(cell.source, start, end))
    return Declarations(tuple(sections), written=_written)


def _commands(source: str) -> list[Span]:
    """The commands of a shell in a cell."""
    if SCRIPT.match(source):  # %%bash: the whole cell is one
        return [(0, len(source))]
    return [found.span() for found in COMMAND.finditer(source)]


class _Cell:
    """The source of a cell, and where each character of it stands in the file."""

    def __init__(self, text: str, lines: Lines) -> None:
        letters: list[re.Match[str]] = []
        for line in lines:
            # without the quotes
            letters += LETTER.finditer(text, line.start + 1, line.end - 1)
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
        places = {self._placed(one): one for one in section.read}
        insert = section.insert
        assert insert is not None

        def inserted(
            anchor: DeclaredRequirement, name: str, version: str
        ) -> TextEdit | None:
            own = places[anchor]
            assert isinstance(own, DeclaredRequirement)
            edit = insert(own, name, version)
            return edit and TextEdit(*self.place((edit.start, edit.end)), edit.text)

        return replace(section, read=tuple(places), insert=inserted)

    def _placed(self, declared: Read) -> Read:
        if isinstance(declared, Finding):
            return replace(declared, span=self.place(declared.span))
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


def _read(letter: re.Match[str]) -> str:
    """The character that a piece of a string of JSON stands for."""
    written = letter[0]
    return written if len(written) == 1 else json.loads(f'"{written}"', strict=False)


def _written(text: str) -> str:
    """Text as it stands within a string of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
