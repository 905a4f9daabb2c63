"""Unified diffs of bytes: `git apply` and `patch -p1` make exactly the new bytes of the old."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import groupby

from codemods.model import FileResult

NOTHING = b"/dev/null"
RESET = b"\x1b[0m"
COLOURS = (
    # ahead of - and +, with which they begin, too
    (b"---", b"\x1b[1m"),
    (b"+++", b"\x1b[1m"),
    (b"@@", b"\x1b[36m"),
    (b"-", b"\x1b[31m"),
    (b"+", b"\x1b[32m"),
)


def unified_diff(
    result: FileResult, *, colour: bool = False, context: int = 3
) -> bytes:
    """The diff of one file, with lines around what changes; empty if it is unchanged."""
    lines = _lines(result, context)
    return b"".join(_coloured(line) if colour else line for line in lines)


def changed_lines(*results: FileResult) -> tuple[int, int]:
    """How many lines of some files are added, and how many removed."""
    signs = [line[:1] for one in results for line in [*_lines(one)][2:]]
    return signs.count(b"+"), signs.count(b"-")


def _lines(result: FileResult, context: int = 3) -> Iterator[bytes]:
    path = result.path.encode()
    old = NOTHING if result.kind == "new" else b"a/" + path
    new = b"b/" + path
    before = _with_ends(result.before.split(b"\n"))
    after = _with_ends(result.after.split(b"\n"))
    lines = difflib.diff_bytes(
        difflib.unified_diff, before, after, old, new, n=context, lineterm=b"\n"
    )
    for line in _matched(list(lines)):
        if line.endswith(b"\n"):
            yield line
        else:
            # the last line of a file without a newline at its end
            yield line + b"\n"
            yield b"\\ No newline at end of file\n"


def _matched(lines: list[bytes]) -> Iterator[bytes]:
    """The lines of a diff, in which lines that are removed and added again stay in place.

    In long files `difflib` passes over lines that occur often, such as empty ones.
    """
    # --- a/train.py and +++ b/train.py
    yield from lines[:2]
    for changed, group in groupby(lines[2:], lambda line: line[:1] in (b"-", b"+")):
        if not changed:
            yield from group
            continue
        found = list(group)
        removed = [line[1:] for line in found if line[:1] == b"-"]
        added = [line[1:] for line in found if line[:1] == b"+"]
        # without `autojunk`, no line is passed over
        matcher = difflib.SequenceMatcher(None, removed, added, autojunk=False)
        for what, old_start, old_end, new_start, new_end in matcher.get_opcodes():
            if what == "equal":
                yield from _signed(b" ", removed[old_start:old_end])
            else:
                yield from _signed(b"-", removed[old_start:old_end])
                yield from _signed(b"+", added[new_start:new_end])


def _signed(sign: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    return (sign + line for line in lines)


def _with_ends(parts: list[bytes]) -> list[bytes]:
    """The lines with their line endings; the last one has none, or is empty and left out."""
    lines = [part + b"\n" for part in parts[:-1]]
    if parts[-1]:
        lines.append(parts[-1])
    return lines


def _coloured(line: bytes) -> bytes:
    for prefix, start in COLOURS:
        if line.startswith(prefix):
            return start + line[:-1] + RESET + b"\n"
    return line
