"""A file that declares dependencies: its text, and what that declares."""

from __future__ import annotations

import codecs
import importlib
import posixpath
from dataclasses import dataclass

from codemods.model import Source
from codemods.sources.notebook import SUFFIX, Notebook, read_cells
from codemods.sources.text import LINE_END, Text, UndecodableError, decode
from optim2optax.dependencies import not_edited
from optim2optax.dependencies.declared import Declarations, FormatError, not_read
from optim2optax.dependencies.file_names import format_of, mentions

INCLUDED = "requirements_txt"
"""The format of files with any other name: requirements include them."""

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class DeclaringFile:
    """A file, its text and how that is written in bytes, and what it declares."""

    source: Source
    text: str
    form: Text | Notebook
    declares: Declarations

    def position(self, index: int) -> tuple[int, int]:
        """The line in the file and the column of an index, from 1."""
        starts = [start for start in _line_starts(self.text) if start <= index]
        line = len(starts)
        if self.form.places:
            _, line = self.form.places[line - 1]
        return line, index - starts[-1] + 1


def read_source(source: Source) -> DeclaringFile:
    """A file with what it declares: without Flax and JAX, that is nothing."""
    if not mentions(source.content):
        return DeclaringFile(source, "", Text(b"", "utf-8", b""), Declarations())
    form: Text | Notebook
    try:
        form = _decoded(source.content, source.path)
        text = form.code
    except UndecodableError as error:
        # any bytes are text in Latin-1, so that the problem can be reported with a place
        form = Text(source.content, "latin-1", b"")
        declares = Declarations(others=(not_read((0, 0), f"{error}."),))
        return DeclaringFile(source, form.code, form, declares)
    try:
        declares = parse(text, source.path)
    except FormatError as error:
        starts = _line_starts(text)[error.line - 1 :]
        # a parser may name a line behind the last
        start = starts[0] if starts else 0
        declares = Declarations(others=(not_read((start, start), f"{error}."),))
    return DeclaringFile(source, text, form, declares)


def parse(text: str, path: str) -> Declarations:
    """What a file declares, in the format that its name tells. Raises FormatError."""
    command = not_edited.command_of(posixpath.basename(path), text)
    if command:
        told = tuple(not_edited.requirements(text))
        return Declarations(told=told, command=command)
    module = importlib.import_module(
        f"optim2optax.dependencies.{format_of(path) or INCLUDED}"
    )
    declares: Declarations = module.read(text, path)
    return declares


def _decoded(content: bytes, path: str) -> Text | Notebook:
    """How a file is written. Raises UndecodableError.

    It is in UTF-8 unless a byte order mark, or the coding line of a Python file, says otherwise.
    """
    if path.endswith(SUFFIX):
        return read_cells(content)
    if path.endswith(".py"):
        return decode(content)
    marks = (found for found in MARKS if content.startswith(found[0]))
    mark, encoding = next(marks, (b"", "utf-8"))
    try:
        content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise UndecodableError(
            f"cannot be decoded as {encoding}: byte {error.start}"
        ) from error
    return Text(content, encoding, mark)


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in LINE_END.finditer(text))]
