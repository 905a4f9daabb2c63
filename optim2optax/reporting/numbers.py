"""How much was found: by rule, and by repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click

from codemods.model import FileResult
from optim2optax.reporting.report import Report
from optim2optax.wording import printable

Row = Sequence[str]


def by_rule(report: Report) -> Iterator[str]:
    """The numbers of files and optimizers, and a line for each rule with sites."""
    if not report.summary["sites"]:
        return
    # imports LibCST, which a run without sites does without
    from codemods.rules import catalogue

    done, staying = _optimizers(report.results)
    changed, scanned = report.summary["files_changed"], report.summary["files_scanned"]
    migrate = "would migrate" if report.preview else "migrated"
    change = "would change" if report.preview else "changed"
    yield f"files: {scanned} looked at, {changed} {change}"
    yield f"optimizers: {done} {migrate}, {staying} left"
    yield ""
    rewritten: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for _, site in report.sites:
        counted = rewritten if site.status == "rewritten" else left
        counted[site.code] += 1
    codes = sorted({*rewritten, *left})
    numbers = [(code, str(rewritten[code]), str(left[code])) for code in codes]
    title, *lines = _table([("rule", "rewritten", "left"), *numbers])
    yield title
    for code, line in zip(codes, lines, strict=True):
        yield f"{line}  {catalogue()[code].summary}"
    yield ""


def by_repository(repositories: Mapping[str, Sequence[FileResult]]) -> Iterator[str]:
    """A line for each repository."""
    yield ""
    rows: list[Row] = [
        ("repository", "files", "changed", "optimizers", "sites", "errors")
    ]
    for name, results in repositories.items():
        summary = Report(results).summary
        done, staying = _optimizers(results)
        row = [
            printable(name),
            str(summary["files_scanned"]),
            str(summary["files_changed"]),
            f"{done} of {done + staying}",
            f"{summary['rewritten']} of {summary['sites']}",
            str(summary["errors"]),
        ]
        rows.append(row)
    yield from _table(rows)


def _optimizers(results: Sequence[FileResult]) -> tuple[int, int]:
    """How many groups migrate, and how many stay, in part or as a whole."""
    groups: dict[object, bool] = {}
    for result in results:
        for site in result.sites:
            if site.group is not None:
                # one use that stays is enough for the group to count as left
                is_done = site.status == "rewritten"
                groups[site.group] = groups.get(site.group, True) and is_done
    done = sum(groups.values())
    return done, len(groups) - done


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Rows in columns; the first is the title, and all but the first column are to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, (first, *others) in enumerate(rows):
        cells = [first.ljust(widths[0])]
        for cell, width in zip(others, widths[1:], strict=True):
            cells.append(cell.rjust(width))
        line = "  ".join(cells)
        if number == 0:
            line = click.style(line, bold=True)
        yield line
