"""A file that declares dependencies, read in the format that its name tells."""

from __future__ import annotations

import importlib
import posixpath
from typing import Protocol, cast

from codemods.model import Source
from codemods.sources.text import LINE_END, UndecodableError
from optim2optax.dependencies import lock_files
from optim2optax.dependencies.declared import Declarations, FormatError, not_read
from optim2optax.dependencies.file_names import format_of
from optim2optax.dependencies.texts import FileText, decode, mentions

UNTOUCHED = FileText("", "utf-8", b"")


class _Format(Protocol):
    def read(self, text: str, path: str) -> Declarations: ...


def read_source(source: Source) -> tuple[FileText, Declarations]:
    """The text of a file, and what it declares. A file without Flax and JAX declares nothing."""
    if not mentions(source.content):
        return UNTOUCHED, Declarations()
    try:
        text = decode(source.content, source.path)
    except UndecodableError as error:
        # any bytes are text in Latin-1, so that the problem can be reported with a place
        text = FileText(source.content.decode("latin-1"), "latin-1", b"")
        return text, Declarations(problems=(not_read((0, 0), f"{error}."),))
    try:
        return text, parse(text.text, source.path)
    except FormatError as error:
        starts = line_starts(text.text)[error.line - 1 :]
        # a parser may name a line behind the last
        start = starts[0] if starts else 0
        return text, Declarations(problems=(not_read((start, start), f"{error}."),))


def parse(text: str, path: str) -> Declarations:
    """What a file declares. Raises UnreadableError."""
    command = lock_files.command_of(posixpath.basename(path), text)
    if command is not None:
        return lock_files.read(text, command)
    module = importlib.import_module(f"optim2optax.dependencies.{format_of(path)}")
    return cast(_Format, module).read(text, path)


def line_starts(text: str) -> list[int]:
    """The index at which each line begins."""
    starts = [0]
    starts += [found.end() for found in LINE_END.finditer(text)]
    return starts
