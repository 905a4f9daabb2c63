"""The page of `rewrite --html` for many files: its size, and the time to make it and to open it in a browser.

    python -m benchmarks.review [FILES]

The programs of `fixtures/` are migrated, and their results copied until there are as many files. The time to open is that from
the request to the end of `load`, with the first screen drawn, in a browser that has just been started.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

from codemods.model import FileResult, Location, Options
from optim2optax.project import Patterns, find_files
from optim2optax.reporting import Report
from optim2optax.reporting.html import render_html
from optim2optax.rewriting import rewrite_files
from tests.optim2optax.browsers import launched

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*/before.py"))
FILES = 500
RUNS = 5
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main(files: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = _report(Path(folder), files)
        start = time.perf_counter()
        text = render_html(report, {})
        made = time.perf_counter() - start
        page = Path(folder, "review.html")
        page.write_text(text, encoding="utf-8")
        opened = _in_a_browser(page)
    sites = report.summary["sites"]
    print(f"{files} files, {sites:,} sites, {len(text) / 1e6:.1f} MB")
    print(f"made in {made:.1f} s, opened in {opened:.2f} s")


def _report(folder: Path, files: int) -> Report:
    """The report of the fixtures, over and over until there are as many files."""
    for program in FIXTURES:
        path = folder / program.parent.name / "train.py"
        path.parent.mkdir(parents=True)
        path.write_bytes(program.read_bytes())
    found = find_files([str(folder)], Patterns(str(folder), ()))
    results = rewrite_files(found, Options(trace=True), write=False, jobs=1)
    copies = (_copied(result, number) for number in count() for result in results)
    return Report([*islice(copies, files)], preview=True)


def _copied(result: FileResult, number: int) -> FileResult:
    """The result of a file in a folder of its own."""

    def moved(place: Location) -> Location:
        return Location(f"part{number}/{place.path}", place.line)

    sites = (
        replace(
            site,
            group=site.group and moved(site.group),
            cause=site.cause and moved(site.cause),
            way=tuple(map(moved, site.way)),
        )
        for site in result.sites
    )
    return result._replace(path=f"part{number}/{result.path}", sites=tuple(sites))


def _in_a_browser(path: Path) -> float:
    """The seconds to open a page: the median of some runs."""
    opened: list[float] = []
    for _ in range(RUNS):
        with launched() as browser:
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.evaluate(DRAWN)
            opened.append(time.perf_counter() - start)
    return sorted(opened)[RUNS // 2]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else FILES)
