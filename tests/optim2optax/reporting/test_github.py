"""Annotations: one line each, whatever is in the text."""

from __future__ import annotations

from optim2optax.reporting import render
from tests.optim2optax.reporting.reports import report

FILE = "file=src/train%2C 100%25%3A.py"


def test_after_a_run() -> None:
    assert render(report(), "github", colour=False).splitlines() == [
        f"::warning {FILE},line=6,col=5,endColumn=9,title=FO903::50%25 of this:%0D%0Ais odd, yes%0Afix: Do it: by hand.",
        f"::notice {FILE},line=9::unused suppression: there is nothing to ignore here",
        "::error file=bad é.py::line 1: odd",
    ]


def test_a_preview_also_shows_what_would_be_rewritten() -> None:
    lines = render(report(preview=True), "github", colour=False).splitlines()
    assert lines[0] == f"::notice {FILE},line=3,col=5,endColumn=9,title=FO202::would be rewritten: a message"
    assert [line.split()[0] for line in lines] == ["::notice", "::notice", "::warning", "::notice", "::error"]
