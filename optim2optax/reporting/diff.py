"""Unified diffs of bytes: `git apply` and `patch -p1` turn the old bytes into exactly the new ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import groupby

from codemods.model import FileResult

NOTHING = b"/dev/null"
RESET = b"\x1b[0m"
COLOURS = (
    (b"---", b"\x1b[1m"),
    (b"+++", b"\x1b[1m"),
    (b"@@", b"\x1b[36m"),
    (b"-", b"\x1b[31m"),
    (b"+", b"\x1b[32m"),
)


def unified_diff(result: FileResult, *, colour: bool = False) -> bytes:
    """The diff of one file; empty if it is unchanged."""
    return b"".join(_coloured(line) if colour else line for line in _lines(result))


def _lines(result: FileResult) -> Iterator[bytes]:
    path = result.path.encode()
    old = NOTHING if result.kind == "new" else b"a/" + path
    new = NOTHING if result.kind == "deleted" else b"b/" + path
    before, after = result.before.split(b"\n"), result.after.split(b"\n")
    lines = difflib.diff_bytes(
        difflib.unified_diff, _kept_ends(before), _kept_ends(after), old, new, lineterm=b"\n"
    )
    for line in _matched(list(lines)):
        if line.endswith(b"\n"):
            yield line
        else:
            yield line + b"\n"
            yield b"\\ No newline at end of file\n"


def _matched(lines: list[bytes]) -> Iterator[bytes]:
    """The lines of a diff, with what is removed and added again as it was left in place.

    In long files `difflib` passes over lines that occur often, such as blank ones.
    """
    yield from lines[:2]
    for changed, group in groupby(lines[2:], lambda line: line[:1] in (b"-", b"+")):
        if not changed:
            yield from group
            continue
        found = list(group)
        removed, added = ([line[1:] for line in found if line[:1] == sign] for sign in (b"-", b"+"))
        for what, i, j, k, m in difflib.SequenceMatcher(
            None, removed, added, autojunk=False
        ).get_opcodes():
            if what == "equal":
                yield from _signed(b" ", removed[i:j])
            else:
                yield from _signed(b"-", removed[i:j])
                yield from _signed(b"+", added[k:m])


def _signed(sign: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    return (sign + line for line in lines)


def _kept_ends(parts: list[bytes]) -> list[bytes]:
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _coloured(line: bytes) -> bytes:
    for prefix, start in COLOURS:
        if line.startswith(prefix):
            return start + line[:-1] + RESET + b"\n"
    return line
