"""What a page shows of a file: the lines that change or are spoken of, with lines around them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from codemods.model import FileResult, Site
from optim2optax.reporting.diff import unified_diff

HEADER = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
KINDS = {" ": "", "-": "old", "+": "new"}
AROUND = 3


@dataclass(frozen=True)
class Row:
    """A line: how it changes, its numbers in the old file and in the new, and its code."""

    sign: str
    old: int | None
    new: int | None
    code: str

    @property
    def kind(self) -> str:
        return KINDS[self.sign]


@dataclass(frozen=True)
class Excerpt:
    """Some lines in a row, and the sites in them."""

    rows: list[Row]
    sites: list[Site]


def excerpts(result: FileResult, lines: Container[int | None]) -> Iterator[Excerpt]:
    """The excerpts of a file, in order: what changes, and some lines of the old file."""
    rows = [*_rows(result)]
    shown: set[int] = set()
    for index, row in enumerate(rows):
        if row.sign != " " or row.old in lines:
            shown.update(range(index - AROUND, index + AROUND + 1))
    run: list[Row] = []
    for index in range(len(rows) + 1):
        if index in shown and index < len(rows):
            run.append(rows[index])
        elif run:
            numbers = {row.old for row in run}
            sites = [site for site in result.sites if site.line in numbers]
            yield Excerpt(run, sorted(sites, key=lambda site: site.line))
            run = []


def _rows(result: FileResult) -> Iterator[Row]:
    """All lines of a file, old and new, as `--diff` has them."""
    old = new = 0
    length = result.before.count(b"\n") + 1
    diff = unified_diff(result, context=length).decode("utf-8", "replace")
    lines = diff.split("\n")[2:]
    if not result.changed:
        text = result.before.decode("utf-8", "replace")
        lines = ["@@ -1 +1 @@", *(f" {line}" for line in text.split("\n"))]
    for text in lines:
        header = HEADER.match(text)
        if header:
            old, new = int(header[1]), int(header[2])
        # but not: \ No newline at end of file
        elif text[:1] in KINDS and text:
            sign, code = text[0], text[1:].removesuffix("\r")
            is_old, is_new = sign != "+", sign != "-"
            yield Row(sign, old if is_old else None, new if is_new else None, code)
            old += is_old
            new += is_new
