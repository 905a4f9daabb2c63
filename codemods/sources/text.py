"""A file's bytes as text and back, byte for byte, and columns of `ast` in characters."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol


class HasCode(Protocol):
    """A file that has code."""

    @property
    def code(self) -> str:
        """The code, as text."""


LINE_END = re.compile("\r\n|\r|\n")
TEXT_OR_COMMENT = re.compile(
    r"""
    (\"{3}|'{3}|["'])(?:\\.|(?!\1)[^\\])*\1  # text in quotation marks of any kind
    | [#][^\r\n]*
    """,
    re.DOTALL | re.VERBOSE,
)


class UndecodableError(ValueError):
    """The bytes are not a Python source text; the message says why, for people."""


@dataclass(frozen=True)
class Text:
    """A file that can be decoded: its bytes, the encoding, and the byte order mark.

    The mark is empty bytes if there is none. The code is decoded whenever it is asked for: as text,
    a file with a single wide character takes up to four times the memory.
    """

    content: bytes
    encoding: str
    bom: bytes

    places: ClassVar[Sequence[tuple[int, int]]] = ()
    """No line stands elsewhere, as those of a notebook do."""

    @property
    def code(self) -> str:
        """The code, without byte order mark."""
        return self.content[len(self.bom) :].decode(self.encoding)

    def encode(self, code: str) -> bytes:
        """The bytes of new code for the same file.

        Raises:
          UndecodableError: if the file's encoding lacks a character of the new code.
        """
        try:
            return self.bom + code.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise UndecodableError(
                f"the new code has a character that {self.encoding} lacks"
            ) from error


def decode(content: bytes) -> Text:
    """Decode a source file as Python does: by byte order mark, coding line (PEP 263), else UTF-8.

    Raises:
      UndecodableError: for NUL bytes, CR line ends, an unknown encoding, or bytes that it does not
        have.
    """
    bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    if b"\0" in content:
        raise UndecodableError("contains NUL bytes: not a Python source file")
    if b"\r" in content and b"\n" not in content:
        raise UndecodableError("has CR line ends: let a formatter write it anew first")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    except SyntaxError as error:
        raise UndecodableError(f"cannot be decoded: {error.msg}") from error
    # the mark is kept in `bom`
    if encoding == "utf-8-sig":
        encoding = "utf-8"
    try:
        text = Text(content, encoding, bom)
        code = text.code
        reproduced = encoding == "utf-8" or text.encode(code) == content
    except UnicodeDecodeError as error:
        raise UndecodableError(
            f"cannot be decoded as {encoding}: byte {error.start}"
        ) from error
    except (LookupError, UnicodeError) as error:
        raise UndecodableError(f"cannot be decoded as {encoding}: {error}") from error
    if not reproduced:
        raise UndecodableError(
            f"the encoding {encoding} does not give the same bytes again"
        )
    return text


class Codes(Mapping[str, str]):
    """The code of some files, by path."""

    def __init__(
        self, texts: Mapping[str, HasCode], paths: Iterable[str] | None = None
    ) -> None:
        self._texts = texts
        self._paths = dict.fromkeys(texts if paths is None else paths)

    def __getitem__(self, path: str) -> str:
        if path not in self._paths:
            raise KeyError(path)
        return self._texts[path].code

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def without(self, paths: Collection[str]) -> Codes:
        """The code of all files but some."""
        return Codes(self._texts, (path for path in self._paths if path not in paths))


class Columns:
    """Converts positions of `ast`, whose columns count UTF-8 bytes, to columns in characters."""

    def __init__(self, code: str) -> None:
        self.code = code
        self._starts = [0]
        self._starts += (found.end() for found in LINE_END.finditer(code))
        # Only lines with other characters than ASCII need a conversion.
        self._wide: dict[int, bytes] = {}
        for number, line in enumerate(LINE_END.split(code), 1):
            if not line.isascii():
                self._wide[number] = line.encode("utf-8", "surrogatepass")

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The source text of a node, in time that does not grow with the file."""
        start = self.offset(node.lineno, node.col_offset)
        end = self.offset(node.end_lineno, node.end_col_offset)
        return self.code[start:end]

    def offset(self, line: int | None, byte_column: int | None) -> int:
        """Where in the code, in characters, a line (from 1) and a column in bytes (from 0) are."""
        assert line is not None
        assert byte_column is not None
        return self._starts[line - 1] + self.character(line, byte_column)

    def character(self, line: int, byte_column: int) -> int:
        """The character column for a line (from 1) and a column in bytes (from 0)."""
        wide = self._wide.get(line)
        if wide is None:
            return byte_column
        return len(wide[:byte_column].decode("utf-8", "surrogatepass"))
