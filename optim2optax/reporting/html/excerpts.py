"""Excerpts of a file: what changes in it, and lines that are spoken of, each with lines around."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from codemods.model import FileResult
from optim2optax.reporting.diff import unified_diff
from optim2optax.reporting.html.code import Span, changed_words, shown, syntax

HEADER = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
KINDS = {" ": "", "-": "old", "+": "new"}


@dataclass(frozen=True)
class Row:
    """A line: how it changes, its numbers in the old file and in the new, and its code.

    `anchor` is set if something links to it.
    """

    sign: str
    old: int | None
    new: int | None
    code: Markup
    anchor: str = ""

    @property
    def kind(self) -> str:
        return KINDS[self.sign]


@dataclass(frozen=True)
class Excerpt:
    """Some lines in a row, and the first and the last that they have in the old file."""

    rows: Sequence[Row]
    first: int
    last: int


@dataclass(frozen=True)
class _Line:
    sign: str
    old: int | None
    new: int | None


def excerpts(
    result: FileResult, wanted: Mapping[int, int], anchors: Mapping[int, str]
) -> list[Excerpt]:
    """The excerpts of a file, in order.

    Args:
      result: the file.
      wanted: lines of the old file that are shown, each with the number of lines around it.
      anchors: the names of lines of the old file that something links to.
    """
    before, after = _text(result.before), _text(result.after)
    hunks = [*_hunks(result)]
    windows = _windows(hunks, wanted, len(before))
    parts = sorted([*hunks, *windows], key=_first)
    colours = syntax("\n".join(before)), syntax("\n".join(after))
    found: list[Excerpt] = []
    for lines in parts:
        rows = [*_rows(lines, before, after, colours, anchors)]
        # a new file has no old lines
        numbers = [line.old for line in lines if line.old is not None] or [0]
        found.append(Excerpt(rows, numbers[0], numbers[-1]))
    return found


def _text(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _first(lines: Sequence[_Line]) -> int:
    return lines[0].old or 0


def _hunks(result: FileResult) -> Iterator[list[_Line]]:
    """The hunks of the unified diff, which are those that `--diff` prints."""
    lines: list[_Line] = []
    old = new = 0
    diff = unified_diff(result).decode("utf-8", "replace")
    # behind --- a/train.py and +++ b/train.py
    for text in diff.split("\n")[2:]:
        match = HEADER.match(text)
        if match:
            if lines:
                yield lines
            lines = []
            old = int(match[1])
            new = int(match[2])
        elif text[:1] in KINDS:
            # but not: \ No newline at end of file
            sign = text[0]
            is_old = sign != "+"
            is_new = sign != "-"
            lines.append(_Line(sign, old if is_old else None, new if is_new else None))
            old += is_old
            new += is_new
    if lines:
        yield lines


def _windows(
    hunks: Sequence[Sequence[_Line]], wanted: Mapping[int, int], length: int
) -> Iterator[list[_Line]]:
    """The lines around those that are wanted and in no hunk."""
    taken = {line.old for lines in hunks for line in lines}
    inside: set[int] = set()
    for number, around in wanted.items():
        if number not in taken:
            first = max(1, number - around)
            last = min(length, number + around)
            inside.update(line for line in range(first, last + 1) if line not in taken)
    shifts = _shifts(hunks)
    starts = [start for start, _ in shifts]
    # a run of numbers has one difference from their indices
    for _, run in groupby(enumerate(sorted(inside)), lambda pair: pair[1] - pair[0]):
        lines: list[_Line] = []
        for _, number in run:
            # ahead of the first hunk, both files have the same numbers
            index = bisect_right(starts, number) - 1
            shift = shifts[index][1] if index >= 0 else 0
            lines.append(_Line(" ", number, number + shift))
        yield lines


def _shifts(hunks: Sequence[Sequence[_Line]]) -> list[tuple[int, int]]:
    """From which line of the old file on a line of the new one is how many lines further down."""
    found: list[tuple[int, int]] = []
    shift = 0
    for lines in hunks:
        shift += sum(line.sign == "+" for line in lines)
        shift -= sum(line.sign == "-" for line in lines)
        numbers = [line.old for line in lines if line.old is not None]
        # the only hunk of a new file has no old line
        last = numbers[-1] if numbers else 0
        found.append((last, shift))
    return found


def _rows(
    lines: Sequence[_Line],
    before: Sequence[str],
    after: Sequence[str],
    colours: tuple[list[list[Span]], list[list[Span]]],
    anchors: Mapping[int, str],
) -> Iterator[Row]:
    for changes, group in groupby(lines, lambda line: line.sign != " "):
        run = [*group]
        # words are marked where lines change, and not in the lines around them
        changed = run if changes else []
        old = [before[line.old - 1] for line in changed if line.old]
        new = [after[line.new - 1] for line in changed if line.new]
        marks = [iter(side) for side in changed_words(old, new)]
        for line in run:
            anchor = ""
            if line.old is not None:
                text = before[line.old - 1]
                spans = colours[0][line.old - 1]
                anchor = anchors.get(line.old, "")
            else:
                assert line.new is not None
                text = after[line.new - 1]
                spans = colours[1][line.new - 1]
            side = 1 if line.sign == "+" else 0
            words = next(marks[side]) if changes else ()
            yield Row(line.sign, line.old, line.new, shown(text, spans, words), anchor)
