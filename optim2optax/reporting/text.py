"""A report for people: what is left and how to do it, then totals that add up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

import click

from codemods.model import FileResult
from optim2optax.reporting.causes import (
    CONFIGURED,
    DEPENDENCIES,
    ESCAPE,
    NOTE,
    TOLD,
    Entry,
    entries,
    hinted,
    partly,
)
from optim2optax.reporting.numbers import by_repository
from optim2optax.reporting.report import Report, Sites
from optim2optax.wording import counted, printable

UNKNOWN, MODELS = "FO898", "FO897"
FILES, LINES = 3, 10
"""The number of files that are named of what is in several, and of lines in each."""

ADDED = {"FO851": "no optax", "FO853": "Python"}


def render(report: Report) -> str:
    """The text, in colours, which printing to a file leaves out."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    details = list(_details(report))
    yield from details
    if details:
        yield ""
    done = "would be rewritten" if report.preview else "rewritten"
    yield from _changed(report, done)
    yield from _totals(report, done)
    yield from _partly(report)
    if len(report.repositories) > 1:
        yield from by_repository(report.repositories)


def _details(report: Report) -> Iterator[str]:
    """What is left, with errors and notes, file by file."""
    by_file: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries(report):
        path, _ = entry.sites[0]
        by_file[path].append(entry)
    for result in report.results:
        yield from _file(result, by_file[result.path], is_short=not report.verbose)


def _changed(report: Report, done: str) -> Iterator[str]:
    """A line for each file that is edited, and for each folder with new files."""
    would_be = "would be " if report.preview else ""
    for result in report.changed:
        if result.kind == "edited":
            path = click.style(printable(result.path), bold=True)
            yield f"{path}: {_edited(report, result, done)}"
    # of a copy of flax.optim, which has 14 files
    for folder, names in _new_files(report).items():
        title = click.style(folder, bold=True)
        files = counted(len(names), "file")
        listed = ", ".join(names)
        yield f"{title}: {files} {would_be}written: {listed}"


def _edited(report: Report, result: FileResult, done: str) -> str:
    sites = counted(report.of(result, "rewritten"), "site")
    vendored = report.of(result, "vendored")
    if vendored:
        return f"{sites} {done}, {vendored} vendored"
    return f"{sites} {done}"


def _new_files(report: Report) -> dict[str, list[str]]:
    """The names of new files, by folder."""
    folders: dict[str, list[str]] = {}
    for result in report.changed:
        if result.kind == "new":
            folder, _, name = printable(result.path).rpartition("/")
            folders.setdefault(folder or ".", []).append(name)
    return folders


def _file(
    result: FileResult, entries: Iterable[Entry], *, is_short: bool
) -> Iterator[str]:
    path = click.style(printable(result.path), bold=True)
    if result.error is not None:
        title = click.style("error", fg="red", bold=True)
        yield f"{path}: {title}: {printable(result.error)}"
    for entry in entries:
        yield from _entry(entry, is_short=is_short)
    unused = click.style("unused suppression", fg="yellow")
    for line in result.unused_suppressions:
        yield f"{path}:{line}: {unused}: there is nothing to ignore here"


def _entry(entry: Entry, *, is_short: bool) -> Iterator[str]:
    """A root cause, with what to do, where else it strikes, and what waits for that."""
    path, site = entry.sites[0]
    place = click.style(printable(path), bold=True)
    colour = "blue" if entry.reason.code == NOTE else "yellow"
    code = click.style(entry.reason.code, fg=colour, bold=True)
    status = " vendored:" if entry.reason.status == "vendored" else ""
    message = printable(entry.reason.message)
    yield f"{place}:{site.line}:{site.column}: {code}{status} {message}"
    if entry.reason.remedy:
        yield _fix(entry.reason.remedy)
    others = [one for one in entry.sites if (one[0], one[1].line) != (path, site.line)]
    if others:
        title = click.style("also at", fg="cyan")
        yield f"    {title} {_listed(others, is_short=is_short)}"
    if entry.waiting:
        this = "these" if others else "this"
        if entry.others:
            group = "their groups" if others else "its group"
            this += f" and {entry.others} more of {group}"
        title = click.style(f"waiting for {this}:", fg="cyan")
        sites = counted(len(entry.waiting), "site")
        yield f"    {title} {sites} at {_listed(entry.waiting, is_short=is_short)}"


def _listed(sites: Sites, *, is_short: bool) -> str:
    """The lines of sites by file, first where most are: `train.py:7, 9; eval.py:5`.

    Of a short list, the first of each, and how many more there are.
    """
    by_file: dict[str, list[int]] = defaultdict(list)
    for path, site in sites:
        by_file[path].append(site.line)
    files = sorted(by_file.items(), key=lambda item: -len(item[1]))
    shown: list[str] = []
    shown_files = FILES if is_short else len(files)
    for path, found in files[:shown_files]:
        lines = [*dict.fromkeys(found)]
        shown_lines = LINES if is_short else len(lines)
        numbers = ", ".join(map(str, lines[:shown_lines]))
        left = len(lines) - shown_lines
        more = f" and {left} more" if left > 0 else ""
        shown.append(f"{printable(path)}:{numbers}{more}")
    rest = files[shown_files:]
    if rest:
        count = sum(len(found) for _, found in rest)
        shown.append(f"{count} in {counted(len(rest), 'other file')}")
    return "; ".join(shown)


def _fix(remedy: str) -> str:
    return f"    {click.style('fix:', fg='cyan')} {printable(remedy)}"


def _totals(report: Report, done: str) -> Iterator[str]:
    summary = report.summary
    if summary["sites"]:
        # 12 sites in 3 files: 10 rewritten, 0 suppressed, 2 unresolved
        with_sites = sum(1 for result in report.results if result.sites)
        sites = counted(summary["sites"], "site")
        files = counted(with_sites, "file")
        numbers = [
            f"{summary['rewritten']} {done}",
            f"{summary['suppressed']} suppressed",
        ]
        if summary["vendored"]:
            numbers.append(f"{summary['vendored']} vendored")
        numbers.append(f"{summary['unresolved']} unresolved")
        yield f"{sites} in {files}: {', '.join(numbers)}"
    elif readable := summary["files_scanned"] - summary["errors"]:
        yield f"Nothing to migrate in {counted(readable, 'file')}."
    elif not summary["errors"]:
        yield "No Python files found."
    for entry in chain.from_iterable(hinted(report, code) for code in TOLD):
        yield from _entry(entry, is_short=False)
    for entry in hinted(report, UNKNOWN):
        yield from _entry(entry, is_short=not report.verbose)
    yield from _hints(report)
    failing = [result for result in report.results if result.tracebacks]
    if failing:
        files_failing = counted(len(failing), "file")
        yield f"An error within this tool in {files_failing}: please report what --verbose prints."
    own = sum(result.error is not None for result in failing)
    if failed := summary["errors"] - own:
        files_left = counted(failed, "file")
        yield f"{files_left} could not be read, parsed or written: see above"


def _partly(report: Report) -> Iterator[str]:
    """What `--partial` would do with what is left, if it would rewrite anything."""
    left, rewritten, marked = partly(report)
    if not rewritten:
        return
    marking = ""
    if marked:
        others = "the other" if marked == 1 else f"the other {marked}"
        if marked < left - rewritten:
            others = f"{marked} of the others"
        marking = f", which marks {others} with a TODO"
    uses = f"{counted(left, 'use')} that {'stays' if left == 1 else 'stay'}"
    yield f"{rewritten} of {uses} can be rewritten with `--partial`{marking}."


def _hints(report: Report) -> Iterator[str]:
    """Other removed names, in a line or two.

    They are those in the files that optimizers can get to: other files are not read.
    """
    for reason in [one.reason for one in hinted(report, MODELS)][:1]:
        # The models are written for flax.nn, which …
        yield f"{reason.message.removesuffix('.')}: {reason.remedy}"
    apart = (UNKNOWN, ESCAPE, MODELS, *DEPENDENCIES)
    hints = [site for _, site in report.hints if not site.code.startswith(apart)]
    # --modernize resolves the hints without a remedy
    renamed = [site.before for site in hints if not site.remedy]
    # `jax.ops.index_update` was removed.
    removed = [site.message.split("`")[1] for site in hints if site.remedy]
    if renamed:
        yield (
            f"Also found: at least {counted(len(renamed), 'use')} of what JAX, Flax or NumPy "
            f"have renamed since ({_commonest(renamed)}): see --modernize."
        )
    if removed:
        head, who = "Also found:", "JAX, Flax or NumPy"
        if renamed:
            head, who = "And", "they"
        yield (
            f"{head} at least {counted(len(removed), 'use')} of what {who} have removed "
            f"({_commonest(removed)}), which has to be rewritten by hand."
        )
    yield from _dependencies(report)


def _dependencies(report: Report) -> Iterator[str]:
    """What would have to be installed for the new code, in a line or two."""
    outdated: list[str] = []
    places: list[str] = []
    by_hand: list[str] = []
    for path, site in report.hints:
        if not site.code.startswith(DEPENDENCIES) or site.code == CONFIGURED:
            continue
        if site.remedy:
            by_hand.append(path)
        else:
            # flax==0.3.4, without its quotes; optax and Python have no such text
            requirement = site.before.strip("'\"")
            places.append(path)
            outdated.append(ADDED.get(site.code, requirement))
    if outdated:
        yield (
            f"The new code needs other dependencies than those in {_few(places)} "
            f"({_commonest(outdated)}): see --modernize."
        )
    if by_hand:
        count = counted(len(by_hand), "dependency", "dependencies")
        yield f"{count} to see to by hand in {_few(by_hand)}: --modernize tells which."


def _few(paths: Iterable[str]) -> str:
    """The first three, each once."""
    shown = [printable(path) for path in dict.fromkeys(paths)]
    more = ", …" if len(shown) > 3 else ""
    return ", ".join(shown[:3]) + more


def _commonest(texts: Iterable[str]) -> str:
    """The three commonest, each on one line."""
    counted = Counter(" ".join(text.split()) for text in texts)
    # of equally common ones, the first of the alphabet
    by_count = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(text for text, _ in by_count[:3])
    more = ", …" if len(counted) > 3 else ""
    return printable(shown) + more
