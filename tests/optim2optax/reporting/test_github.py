"""Annotations: one line each, whatever is in the text."""

from collections.abc import Sequence
from dataclasses import replace

from codemods import FileResult, Site
from optim2optax.reporting import Report, render
from optim2optax.reporting.github import MOST
from tests.optim2optax.reporting.reports import report, site

FILE = "file=src/train%2C 100%25%3A.py"


def test_after_a_run() -> None:
    assert render(report(), "github").splitlines() == [
        "::error file=bad é.py::line 1: odd",
        f"::warning {FILE},line=6,col=5,endColumn=9,title=FO903::50%25 of this:%0D%0Ais odd, yes%0Afix: Do it: by hand.",
        f"::notice {FILE},line=9::unused suppression: there is nothing to ignore here",
    ]


def test_a_preview_also_shows_what_would_be_rewritten() -> None:
    lines = render(report(preview=True), "github").splitlines()
    kinds = ["::error", "::warning", "::notice", "::notice", "::notice"]
    assert [line.split()[0] for line in lines] == kinds
    place = f"{FILE},line=3,col=5,endColumn=9,title=FO202"
    assert lines[2] == f"::notice {place}::would be rewritten: a message"


def shown(sites: Sequence[Site]) -> list[str]:
    result = FileResult("a.py", b"", b"", tuple(sites))
    return render(Report([result]), "github").splitlines()


def test_no_more_than_github_shows_and_the_last_counts_the_others() -> None:
    lines = shown([site("FO903", "unresolved", line) for line in range(1, 31)])
    assert len(lines) == MOST
    assert all(f"line={number}," in line for number, line in enumerate(lines[:-1], 1))
    assert lines[-1].startswith("::warning title=optim2optax::21 more like these: ")
    lines = shown([site("FO903", "unresolved", line) for line in range(1, MOST + 1)])
    assert len(lines) == MOST
    assert "more" not in lines[-1]


def test_reasons_come_before_what_follows_from_them() -> None:
    codes = enumerate(("FO911", "FO901", "FO906"), 1)
    lines = shown([site(code, "unresolved", line) for line, code in codes])
    titles = [line.partition("title=")[2][:5] for line in lines]
    assert titles == ["FO906", "FO911", "FO901"]


def test_several_lines_have_no_columns() -> None:
    found = site("FO903", "unresolved", 6, remedy="Name it.")
    [line] = shown([replace(found, end_line=8)])
    place = "file=a.py,line=6,endLine=8,title=FO903"
    assert line == f"::warning {place}::a message%0Afix: Name it."


def test_two_sites_at_one_place_are_one_annotation() -> None:
    assert len(shown([site("FO903", "unresolved")] * 2)) == 1


def test_nothing_ends_a_line_or_a_property_but_its_end() -> None:
    path, error = "a,line=1::b%0A\n::error::c.py", "x\r\n::stop-commands::%0A"
    odd = FileResult(path, b"", b"", error=error)
    assert render(Report([odd]), "github") == (
        "::error file=a%2Cline=1%3A%3Ab%250A%0A%3A%3Aerror%3A%3Ac.py::x%0D%0A::stop-commands::%250A\n"
    )
