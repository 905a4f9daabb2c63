"""Code on a page is the code of the file, whatever is marked in it."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from codemods import FileResult
from optim2optax.reporting.diff import unified_diff
from optim2optax.reporting.html.code import (
    LONGEST,
    changed_words,
    highlighted,
    shown,
    syntax,
)
from optim2optax.reporting.html.excerpts import excerpts

FIXTURES = sorted((Path(__file__).parents[4] / "fixtures").glob("*/before.py"))


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def marked(line: str, spans: object) -> list[str]:
    return [line[start:end] for start, end, _ in spans]  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parent.name)
def test_colours_change_no_letter(path: Path) -> None:
    text = path.read_text()
    assert plain(highlighted(text)) == text


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parent.name)
def test_an_excerpt_has_the_lines_of_the_diff(path: Path) -> None:
    after = path.with_name("after.py")
    if not after.exists():
        pytest.skip("it has no one outcome")
    result = FileResult("train.py", path.read_bytes(), after.read_bytes())
    rows = [row for part in excerpts(result, {}, {}) for row in part.rows]
    diff = unified_diff(result).decode().splitlines()[2:]
    lines = [line for line in diff if not line.startswith(("@@", "\\"))]
    assert [f"{row.sign}{plain(row.code)}" for row in rows] == lines
    old = path.read_text().split("\n")
    assert all(old[row.old - 1] == plain(row.code) for row in rows if row.old)


def test_lines_that_do_not_change_are_shown_where_asked_for() -> None:
    text = "".join(f"line{number}\n" for number in range(1, 21))
    changed = text.replace("line3\n", "line3\nmore\n")
    result = FileResult("train.py", text.encode(), changed.encode())
    first, second = excerpts(result, {3: 3, 15: 1}, {15: "f0-15"})
    assert [row.new for row in first.rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [(row.old, row.new, row.anchor) for row in second.rows] == [
        (14, 15, ""),
        (15, 16, "f0-15"),
        (16, 17, ""),
    ]


def test_kinds_of_words() -> None:
    line = "@jit\ndef step(x): return 'a # b' + 1e-3  # why"
    found = [
        (text, span.kind)
        for text, spans in zip(line.split("\n"), syntax(line), strict=True)
        for text, span in zip(marked(text, spans), spans, strict=True)
    ]
    assert found == [
        ("@jit", "decorator"),
        ("def", "keyword"),
        ("step", "name"),
        ("return", "keyword"),
        ("'a # b'", "string"),
        ("1e-3", "number"),
        ("# why", "comment"),
    ]


def test_a_string_of_several_lines() -> None:
    assert [[span.kind for span in spans] for spans in syntax('"""a\nb\n"""\nx')] == [
        ["string"],
        ["string"],
        ["string"],
        [],
    ]


def test_changed_words() -> None:
    old, new = "return optimizer.target", "return optimizer.params"
    removed, added = changed_words([old], [new])
    assert marked(old, removed[0]) == ["target"]
    assert marked(new, added[0]) == ["params"]


def test_nothing_is_marked_where_all_is_new() -> None:
    assert changed_words(["a = 1"], ["def step(state): return state"]) == ([[]], [[]])


def test_a_very_long_line_is_cut() -> None:
    html = shown("x" * 1_000_000, [])
    assert len(html) < 2 * LONGEST
    assert "999,600 more characters" in html
