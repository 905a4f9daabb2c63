"""What a person wants to read: what is left and how to do it, then totals that add up."""

from __future__ import annotations

from collections.abc import Iterator

import click

from codemods.model import FileResult, Site
from optim2optax.reporting.report import Report


def render(report: Report, *, colour: bool) -> str:
    text = "".join(f"{line}\n" for line in _lines(report))
    return text if colour else click.unstyle(text)


def _lines(report: Report) -> Iterator[str]:
    details = [line for result in report.results for line in _file(result)]
    yield from details
    if details:
        yield ""
    done = "would be rewritten" if report.preview else "rewritten"
    for result in report.changed:
        yield f"{click.style(result.path, bold=True)}: {_counted(_rewritten(result), 'site')} {done}"
    yield from _totals(report, done)


def _file(result: FileResult) -> Iterator[str]:
    path = click.style(result.path, bold=True)
    if result.error is not None:
        yield f"{path}: {click.style('error', fg='red', bold=True)}: {result.error}"
    for site in result.sites:
        if site.status == "unresolved":
            yield from _unresolved(path, site)
    for line in result.unused_suppressions:
        yield f"{path}:{line}: {click.style('unused suppression', fg='yellow')}: there is nothing to ignore here"


def _unresolved(path: str, site: Site) -> Iterator[str]:
    yield f"{path}:{site.line}:{site.column}: {click.style(site.code, fg='yellow', bold=True)} {site.message}"
    if site.remedy:
        yield f"    {click.style('fix:', fg='cyan')} {site.remedy}"


def _totals(report: Report, done: str) -> Iterator[str]:
    summary = report.summary
    if summary["sites"]:
        files = sum(1 for result in report.results if result.sites)
        yield (
            f"{_counted(summary['sites'], 'site')} in {_counted(files, 'file')}: {summary['rewritten']} {done}, "
            f"{summary['suppressed']} suppressed, {summary['unresolved']} unresolved"
        )
    elif readable := summary["files_scanned"] - summary["errors"]:
        yield f"Nothing to migrate in {_counted(readable, 'file')}."
    elif not summary["errors"]:
        yield "No Python files found."
    if summary["errors"]:
        yield f"{_counted(summary['errors'], 'file')} could not be read, parsed or written: see above"


def _rewritten(result: FileResult) -> int:
    return sum(site.status == "rewritten" for site in result.sites)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
