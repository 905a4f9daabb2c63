"""Lines of Python for a page: with colours of syntax, and with the words that changed marked."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup, escape

LONGEST = 400
"""The number of characters of a line that are shown. Notebooks have some of megabytes."""

MOST_WORDS = 1500
"""The number of words on a side beyond which none is marked, because matching is quadratic."""

LEAST_ALIKE = 0.3
"""How alike two sides have to be for a mark to tell more than the colour of the line."""

KEYWORDS = "|".join((*keyword.kwlist, "match", "case"))
TOKEN = re.compile(
    rf"""
    (?P<comment>\#[^\n]*)
    | (?P<string>(?<!\w)[rbfuRBFU]{{0,2}}(?:
        \"\"\"(?:\\.|[^\\])*?\"\"\" | '''(?:\\.|[^\\])*?'''
        | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ))
    | (?P<decorator>^[ \t]*@[\w.]+)
    | (?P<name>(?<=\bdef\ )\w+|(?<=\bclass\ )\w+)
    | (?P<keyword>\b(?:{KEYWORDS})\b)
    | (?P<number>(?<![\w.])\d[\w.]*(?:(?<=[eE])[+-]\d+)?)
    | \w+
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
WORD = re.compile(r"\w+|[^\w\s]")


class Span(NamedTuple):
    """A part of a line, from one column to another, and the class that it has on the page."""

    start: int
    end: int
    kind: str


class Word(NamedTuple):
    """A word of some lines: the line's index, columns, and text."""

    line: int
    start: int
    end: int
    text: str


def syntax(text: str) -> list[list[Span]]:
    """The coloured parts of each line of a text."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    found: list[list[Span]] = [[] for _ in starts]
    line = 0
    for match in TOKEN.finditer(text):
        if match.lastgroup is None:
            # a word without a colour
            continue
        while line + 1 < len(starts) and starts[line + 1] <= match.start():
            line += 1
        start = match.start()
        # a string may have several lines
        for part in match[0].split("\n"):
            if part:
                column = start - starts[line]
                found[line].append(Span(column, column + len(part), match.lastgroup))
            start += len(part) + 1
            line += 1
        # further tokens may stand on its last line
        line -= 1
    return found


def changed_words(
    removed: Sequence[str], added: Sequence[str]
) -> tuple[list[list[Span]], ...]:
    """The words of removed lines that are gone, and those of added lines that are new, by line."""
    old, new = [*_words(removed)], [*_words(added)]
    marks: tuple[list[list[Span]], ...] = ([[] for _ in removed], [[] for _ in added])
    # lines that only go or only come are as a whole old or new
    if not old or not new or max(len(old), len(new)) > MOST_WORDS:
        return marks
    texts = [word.text for word in old], [word.text for word in new]
    matcher = SequenceMatcher(None, *texts, autojunk=False)
    if matcher.ratio() < LEAST_ALIKE:
        return marks
    for what, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if what != "equal":
            _mark(marks[0], removed, old[old_start:old_end])
            _mark(marks[1], added, new[new_start:new_end])
    return marks


def _words(lines: Sequence[str]) -> Iterator[Word]:
    for index, line in enumerate(lines):
        for match in WORD.finditer(line):
            yield Word(index, match.start(), match.end(), match[0])


def _mark(marks: list[list[Span]], lines: Sequence[str], words: Sequence[Word]) -> None:
    """Mark some words; those with only blanks between them get one mark."""
    for word in words:
        of_line = marks[word.line]
        if of_line:
            last = of_line[-1]
            between = lines[word.line][last.end : word.start]
            if not between.strip():
                of_line[-1] = Span(last.start, word.end, "mark")
                continue
        of_line.append(Span(word.start, word.end, "mark"))


def shown(line: str, colours: Sequence[Span], marks: Sequence[Span] = ()) -> Markup:
    """A line as HTML; where it is very long, its beginning, and how much follows."""
    end = min(len(line), LONGEST)
    borders = {0, end}
    for span in (*colours, *marks):
        # where a class begins or ends, the line is cut
        borders.update(column for column in (span.start, span.end) if column < end)
    cuts = sorted(borders)
    parts = [Markup()]
    for start, stop in pairwise(cuts):
        piece = escape(line[start:stop])
        kind = _at(start, colours)
        if kind:
            piece = Markup('<span class="{}">{}</span>').format(kind, piece)
        if _at(start, marks):
            piece = Markup("<mark>{}</mark>").format(piece)
        parts.append(piece)
    if len(line) > LONGEST:
        more = f"… {len(line) - LONGEST:,} more characters"
        parts.append(Markup('<span class="more">{}</span>').format(more))
    return Markup().join(parts)


def _at(column: int, spans: Sequence[Span]) -> str:
    for span in spans:
        if span.start <= column < span.end:
            return span.kind
    return ""


def highlighted(text: str) -> Markup:
    """A text of some lines with colours of syntax."""
    lines = text.split("\n")
    parts = (
        shown(line, spans) for line, spans in zip(lines, syntax(text), strict=True)
    )
    return Markup("\n").join(parts)
