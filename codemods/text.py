"""A file's bytes as text and back, byte for byte, and the columns of `ast` as columns in characters."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
from dataclasses import dataclass

LINE_END = re.compile("\r\n|\r|\n")


class UndecodableError(ValueError):
    """The bytes are not a Python source text; the message says why, for people."""


@dataclass(frozen=True)
class Text:
    """A decoded file: its code without byte order mark, the encoding, and the mark (empty bytes if there is none)."""

    code: str
    encoding: str
    bom: bytes

    def encode(self, code: str) -> bytes:
        """The bytes of new code for the same file.

        Raises:
          UndecodableError: if the file's encoding lacks a character of the new code.
        """
        try:
            return self.bom + code.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise UndecodableError(f"the new code has a character that {self.encoding} lacks") from error


def decode(content: bytes) -> Text:
    """Decode a source file as Python does: by byte order mark, coding line (PEP 263), else UTF-8.

    Raises:
      UndecodableError: for NUL bytes, an unknown encoding, or bytes that the encoding does not have.
    """
    bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    body = content[len(bom) :]
    if b"\0" in body:
        raise UndecodableError("contains NUL bytes: not a Python source file")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    except SyntaxError as error:
        raise UndecodableError(f"cannot be decoded: {error.msg}") from error
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        text = Text(body.decode(encoding), encoding, bom)
        reproduced = encoding == "utf-8" or text.encode(text.code) == content
    except UnicodeDecodeError as error:
        raise UndecodableError(f"cannot be decoded as {encoding}: byte {error.start}") from error
    except (LookupError, UnicodeError) as error:
        raise UndecodableError(f"cannot be decoded as {encoding}: {error}") from error
    if not reproduced:
        raise UndecodableError(f"the encoding {encoding} does not give the same bytes again")
    return text


class Columns:
    """Converts positions given by `ast`, whose columns count UTF-8 bytes, to columns in characters."""

    def __init__(self, code: str) -> None:
        self.code = code
        self._starts = [0, *(found.end() for found in LINE_END.finditer(code))]
        self._wide = {
            number: line.encode("utf-8", "surrogatepass")
            for number, line in enumerate(LINE_END.split(code), 1)
            if not line.isascii()
        }

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The source text of a node, in time that does not grow with the file."""
        return self.code[self.offset(node.lineno, node.col_offset) : self.offset(node.end_lineno, node.end_col_offset)]

    def offset(self, line: int | None, byte_column: int | None) -> int:
        """Where in the code, in characters, a line (from 1) and a column in bytes (from 0) are."""
        assert line is not None
        assert byte_column is not None
        return self._starts[line - 1] + self.character(line, byte_column)

    def character(self, line: int, byte_column: int) -> int:
        """The character column for a line (from 1) and a column in bytes (from 0)."""
        wide = self._wide.get(line)
        return byte_column if wide is None else len(wide[:byte_column].decode("utf-8", "surrogatepass"))
