"""What a person wants to read: what is left and how to do it, then totals that add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from posixpath import commonpath

import click
from codemods.model import FileResult, Site
from codemods.sources.unread import ENTANGLED

from optim2optax.project import printable
from optim2optax.reporting.report import Report

BEYOND = "FO921"
REMOVED, UNKNOWN = "FO899", "FO898"
FILES = 3
"""Of what was removed, as many files are named."""
DEPENDENCIES = ("FO85", "FO95")
"""What begins the codes that are about what is installed."""

ADDED = {"FO851": "no optax", "FO853": "Python"}


def render(report: Report, *, colour: bool) -> str:
    text = "".join(f"{line}\n" for line in _lines(report))
    return text if colour else click.unstyle(text)


def _lines(report: Report) -> Iterator[str]:
    details = [line for result in report.results for line in _file(result)]
    yield from details
    if details:
        yield ""
    done = "would be rewritten" if report.preview else "rewritten"
    yield from _changed(report, done)
    yield from _totals(report, done)


def _changed(report: Report, done: str) -> Iterator[str]:
    """What becomes of each file that changes; of new files and of those that go, a line for each folder."""
    for result in report.changed:
        if result.kind == "edited":
            path = click.style(printable(result.path), bold=True)
            vendored = report.of(result, "vendored")
            rewritten = f"{_counted(report.of(result, 'rewritten'), 'site')} {done}"
            named = f"{'would be ' * report.preview}pointed at the copy of flax.optim by its name"
            what = f"{rewritten}, {vendored} vendored" if vendored else rewritten
            yield f"{path}: {what if result.sites else named}"
    for kind, what in (("new", "written"), ("deleted", "deleted")):
        folders: dict[str, list[str]] = {}
        for result in report.changed:
            if result.kind == kind:
                folder, _, name = printable(result.path).rpartition("/")
                folders.setdefault(folder, []).append(name)
        for folder, names in folders.items():
            told = f"would be {what}" if report.preview else what
            yield f"{click.style(folder, bold=True)}: {_counted(len(names), 'file')} {told}: {', '.join(names)}"


def _file(result: FileResult) -> Iterator[str]:
    if result.error is None and not (result.sites or result.unused_suppressions):
        return
    path = click.style(printable(result.path), bold=True)
    if result.error is not None:
        yield f"{path}: {click.style('error', fg='red', bold=True)}: {printable(result.error)}"
    statuses = ("unresolved", "vendored")
    left = (site for site in result.sites if site.status in statuses and site.code != REMOVED)
    unresolved = (_unresolved(path, site) for site in left)
    noted = (_noted(path, site) for site in result.sites if site.note)
    yield from dict.fromkeys(
        (*unresolved, *noted)
    )  # a constructor and its `create` are two sites at one place
    for line in result.unused_suppressions:
        yield f"{path}:{line}: {click.style('unused suppression', fg='yellow')}: there is nothing to ignore here"


def _unresolved(path: str, site: Site) -> str:
    code = click.style(site.code, fg="yellow", bold=True)
    status = " vendored:" if site.status == "vendored" else ""
    reason = f"{path}:{site.line}:{site.column}: {code}{status} {printable(site.message)}"
    return (
        f"{reason}\n    {click.style('fix:', fg='cyan')} {printable(site.remedy)}"
        if site.remedy
        else reason
    )


def _noted(path: str, site: Site) -> str:
    return f"{path}:{site.line}:{site.column}: {click.style('note', fg='blue', bold=True)} {printable(site.note)}"


def _totals(report: Report, done: str) -> Iterator[str]:
    summary = report.summary
    if summary["sites"]:
        files = sum(1 for result in report.results if result.sites)
        vendored = f"{summary['vendored']} vendored, " if summary["vendored"] else ""
        yield (
            f"{_counted(summary['sites'], 'site')} in {_counted(files, 'file')}: {summary['rewritten']} {done}, "
            f"{summary['suppressed']} suppressed, {vendored}{summary['unresolved']} unresolved"
        )
    elif readable := summary["files_scanned"] - summary["errors"]:
        yield f"Nothing to migrate in {_counted(readable, 'file')}."
    elif not summary["errors"]:
        yield "No Python files found."
    yield from _beyond(report)
    yield from _removed(report)
    yield from _hints(report)
    if summary["errors"]:
        yield f"{_counted(summary['errors'], 'file')} could not be read, parsed or written: see above"


def _beyond(report: Report) -> Iterator[str]:
    """How much is left for the budget of the analysis, and where that is."""
    files = [result.path for result in report.errors if (result.error or "").startswith(ENTANGLED)]
    sites = sum(site.code == BEYOND for result in report.results for site in result.sites)
    if files:
        where = printable(files[0] if len(files) == 1 else commonpath(files) or ".")
        reaching = (
            f", and {_counted(sites, 'site')} {'gets' if sites == 1 else 'get'} there" * bool(sites)
        )
        yield f"Beyond the budget of the analysis: {_counted(len(files), 'file')} ({where}){reaching}: see --budget."
    elif sites:
        yield f"{_counted(sites, 'site')} left for the budget of the analysis: see {BEYOND} above, and --budget."


def _removed(report: Report) -> Iterator[str]:
    """What else was removed and has no other name, and what is not known, one by one, with the files."""
    removed = [(result.path, site) for result, site in report.sites if _is_left(site)]
    hints = ((result.path, site) for result in report.results for site in result.hints)
    for code, sites in (
        (REMOVED, removed),
        (UNKNOWN, [found for found in hints if found[1].code == UNKNOWN]),
    ):
        yield from _by_name(code, sites)


def _is_left(site: Site) -> bool:
    return site.code == REMOVED and site.status == "unresolved"


def _by_name(code: str, sites: Iterable[tuple[str, Site]]) -> Iterator[str]:
    """Names, the commonest first, with the files that use them."""
    found: dict[tuple[str, str | None], list[str]] = {}
    for path, site in sites:
        found.setdefault((site.message.rpartition(": ")[2], site.remedy), []).append(path)
    for (message, remedy), paths in sorted(
        found.items(), key=lambda item: (-len(item[1]), item[0])
    ):
        files = [*dict.fromkeys(paths)]
        shown = ", ".join(map(printable, files[:FILES])) + (
            f" and {len(files) - FILES} more" if len(files) > FILES else ""
        )
        yield f"{click.style(code, fg='yellow', bold=True)} {printable(message)} {_counted(len(paths), 'use')}: {shown}"
        if remedy:
            yield f"    {click.style('fix:', fg='cyan')} {printable(remedy)}"


def _hints(report: Report) -> Iterator[str]:
    """What else has been removed since, in a line or two: in the files that optimizers can get to, as others are not read."""
    everything = [site for result in report.results for site in result.hints]
    hints = [site for site in everything if not site.code.startswith((UNKNOWN, *DEPENDENCIES))]
    renamed = [site.before for site in hints if not site.remedy]
    gone = [site.message.split("`")[1] for site in hints if site.remedy]
    if renamed:
        yield (
            f"Beside that, at least {_counted(len(renamed), 'use')} of what JAX, Flax or NumPy have renamed since "
            f"({_commonest(renamed)}): see --modernize."
        )
    if gone:
        head, who = ("And", "they") if renamed else ("Beside that,", "JAX, Flax or NumPy")
        yield (
            f"{head} at least {_counted(len(gone), 'use')} of what {who} have removed ({_commonest(gone)}), "
            "which has to be written anew."
        )
    yield from _dependencies(report)


def _dependencies(report: Report) -> Iterator[str]:
    """What would have to be installed for the new code, in a line or two."""
    hints = [
        (result.path, site)
        for result in report.results
        for site in result.hints
        if site.code.startswith(DEPENDENCIES)
    ]
    to_raise = [
        (path, ADDED.get(site.code, site.before.strip("'\"")))
        for path, site in hints
        if not site.remedy
    ]
    to_do = [path for path, site in hints if site.remedy]
    if to_raise:
        places = _few(path for path, _ in to_raise)
        what = _commonest(what for _, what in to_raise)
        yield f"The new code needs other dependencies than those in {places} ({what}): see --modernize."
    if to_do:
        yield f"{_counted(len(to_do), 'dependency', 'dependencies')} to see to by hand in {_few(to_do)}: --modernize tells which."


def _few(paths: Iterable[str]) -> str:
    """The first three, each once."""
    shown = [printable(path) for path in dict.fromkeys(paths)]
    return ", ".join(shown[:3]) + (", …" if len(shown) > 3 else "")


def _commonest(texts: Iterable[str]) -> str:
    """The three commonest, each on one line."""
    counted = Counter(" ".join(text.split()) for text in texts)
    shown = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:3]
    return printable(", ".join(text for text, _ in shown)) + (", …" if len(counted) > 3 else "")


def _counted(number: int, noun: str, nouns: str = "") -> str:
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"
