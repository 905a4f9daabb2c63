"""Unified diffs of bytes: `git apply` and `patch -p1` turn the old bytes into exactly the new ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from codemods.model import FileResult

RESET = b"\x1b[0m"
COLOURS = ((b"---", b"\x1b[1m"), (b"+++", b"\x1b[1m"), (b"@@", b"\x1b[36m"), (b"-", b"\x1b[31m"), (b"+", b"\x1b[32m"))


def unified_diff(result: FileResult, *, colour: bool = False) -> bytes:
    """The diff of one file; empty if it is unchanged."""
    return b"".join(_coloured(line) if colour else line for line in _lines(result))


def _lines(result: FileResult) -> Iterator[bytes]:
    path = result.path.encode()
    before, after = result.before.split(b"\n"), result.after.split(b"\n")
    lines = difflib.diff_bytes(
        difflib.unified_diff, _kept_ends(before), _kept_ends(after), b"a/" + path, b"b/" + path, lineterm=b"\n"
    )
    for line in lines:
        if line.endswith(b"\n"):
            yield line
        else:
            yield line + b"\n"
            yield b"\\ No newline at end of file\n"


def _kept_ends(parts: list[bytes]) -> list[bytes]:
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _coloured(line: bytes) -> bytes:
    for prefix, start in COLOURS:
        if line.startswith(prefix):
            return start + line[:-1] + RESET + b"\n"
    return line
