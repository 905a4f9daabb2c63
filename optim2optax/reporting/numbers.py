"""How much was found, by repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from codemods.model import FileResult
from optim2optax.reporting.report import Report
from optim2optax.wording import printable

Row = Sequence[str]
Repositories = Mapping[str, Sequence[FileResult]]


def by_repository(repositories: Repositories) -> Iterator[str]:
    """A line for each repository."""
    yield ""
    title, rows = repository_rows(repositories)
    yield from _table([title, *rows])


def repository_rows(repositories: Repositories) -> tuple[Row, list[Row]]:
    """The titles of a table with a row for each repository, and these."""
    rows: list[Row] = []
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
    return ("repository", "files", "changed", "optimizers", "sites", "errors"), rows


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
