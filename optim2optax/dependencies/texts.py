"""The bytes of a file as text and back, with or without a byte order mark."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from codemods.sources.text import UndecodableError
from codemods.sources.text import decode as decode_python

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class FileText:
    """The text of a file, without the mark that tells its encoding."""

    text: str
    encoding: str
    mark: bytes

    def encode(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)


def decode(content: bytes, path: str) -> FileText:
    """A file's text. Raises UndecodableError.

    It is in UTF-8 unless a byte order mark, or the coding line of a Python file, says otherwise.
    """
    if path.endswith(".py"):
        python = decode_python(content)
        return FileText(python.code, python.encoding, python.bom)
    marks = (found for found in MARKS if content.startswith(found[0]))
    mark, encoding = next(marks, (b"", "utf-8"))
    try:
        return FileText(content[len(mark) :].decode(encoding), encoding, mark)
    except UnicodeDecodeError as error:
        raise UndecodableError(
            f"cannot be decoded as {encoding}: byte {error.start}"
        ) from error


def mentions(content: bytes) -> bool:
    """Whether a file says `flax` or `jax` at all, in any of these encodings."""
    # of UTF-16, every second byte of these letters is 0
    letters = content.replace(b"\0", b"").lower()
    return b"flax" in letters or b"jax" in letters
