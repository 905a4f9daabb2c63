"""The questions of `optim2optax rewrite --interactive`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from codemods.model import Location, Site
from optim2optax.choosing import Answer, Chooser, Question
from optim2optax.cli.colour import wants_colour
from optim2optax.cli.explain import wrapped
from optim2optax.cli.output import clear_progress, write_bytes
from optim2optax.reporting.diff import unified_diff
from optim2optax.wording import counted, printable

ANSWERS: dict[str, Answer] = {"y": "yes", "n": "no", "a": "all", "q": "quit"}
EXPLAIN = "e"
SHOWN = 60
"""The number of characters of a site's code that are shown."""

HELP = """\
y - make these changes
n - leave this as it is
a - make these changes and all that are left
q - leave this and all that is left, and make the changes that were accepted
e - explain these changes
? - print this help
"""


class EndedError(click.ClickException):
    """Standard input ended before the last answer."""

    exit_code = 2


def check_usage(
    given: Mapping[str, Any], output_format: str, *, from_stdin: bool
) -> None:
    """Refuse what has no questions, or nobody to answer them. Raises click.UsageError."""
    for option in ("check", "diff"):
        if given[option]:
            raise click.UsageError(
                f"--interactive asks what to write, and --{option} writes nothing"
            )
    if from_stdin:
        raise click.UsageError(
            "--interactive reads answers from standard input: it needs files"
        )
    if output_format != "text":
        raise click.UsageError(
            f"--interactive asks in text: it cannot report in {output_format}"
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("--interactive needs a terminal to ask in")


def make_chooser() -> Chooser:
    """What asks about each optimizer, at the terminal."""
    return Chooser(_ask, _tell)


def print_choice(chooser: Chooser) -> None:
    """Print how much was accepted."""
    if chooser.accepted or chooser.declined:
        optimizers = counted(chooser.accepted + chooser.declined, "optimizer")
        click.echo(
            f"{optimizers}: {chooser.accepted} accepted, {chooser.declined} declined"
        )


def _ask(question: Question) -> Answer:
    """The answer of the user, to whom the changes are shown."""
    clear_progress()
    click.secho(_title(question), bold=True)
    for change in question.changes:
        write_bytes(unified_diff(change, colour=wants_colour(sys.stdout)))
    prompt = "Make these changes"
    if len(question.groups) == 1:
        prompt = "Migrate this optimizer"
    elif question.groups:
        prompt = "Migrate these optimizers"
    while True:
        key = _answered(f"{prompt} [y,n,a,q,e,?]? ")
        if key in ANSWERS:
            return ANSWERS[key]
        if key == EXPLAIN:
            click.echo("\n".join(_explanation(question)))
        else:
            click.secho(HELP, fg="red", bold=True, nl=False)


def _answered(prompt: str) -> str:
    """The first letter of a line that the user enters. An empty line asks for help."""
    try:
        click.secho(prompt, fg="blue", bold=True, nl=False)
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        click.echo("\nNothing was written.")
        raise
    if not line:
        # Ctrl-D; an empty line would be a newline
        raise EndedError("There is no answer. Nothing was written.")
    return line.strip().casefold()[:1]


def _tell(group: Location) -> None:
    clear_progress()
    click.echo(
        f"The optimizer of {group} stays: it migrates only with others that were declined."
    )


def _title(question: Question) -> str:
    """`Optimizer 1 of 3, train.py:6: Adam, 5 sites in 1 file`."""
    files = counted(len({path for path, _ in question.sites}), "file")
    sites = f"{counted(len(question.sites), 'site')} in {files}"
    if not question.groups:
        return f"Of no optimizer: {sites}"
    last = question.number + len(question.groups) - 1
    numbers = f"Optimizer {question.number}"
    # some migrate only together
    if last > question.number:
        numbers = f"Optimizers {question.number} to {last}"
    places = ", ".join(map(str, question.groups))
    names = dict.fromkeys(optimizer.name for optimizer in question.optimizers)
    # Adam, Momentum, 12 sites in 3 files
    what = f"{', '.join(names)}, {sites}" if names else sites
    return printable(f"{numbers} of {question.of}, {places}: {what}")


def _explanation(question: Question) -> Iterator[str]:
    """What the rules do, each with its sites, and the mathematics of the optimizers."""
    from codemods.optimizers import optimizers
    from codemods.rules import catalogue

    by_code: dict[str, list[tuple[str, Site]]] = {}
    for path, site in question.sites:
        by_code.setdefault(site.code, []).append((path, site))
    for code, sites in sorted(by_code.items()):
        title = click.style(code, fg="yellow", bold=True)
        yield f"{title} {catalogue()[code].summary}"
        yield from _listed(sites)
    names = dict.fromkeys(optimizer.name for optimizer in question.optimizers)
    for name in names:
        # a definition of the program's own is not documented here
        if name in optimizers():
            yield f"\n{wrapped(optimizers()[name].documentation)}"
    yield f"\n`optim2optax explain {min(by_code, default='CODE')}` says more, and so for each code."


def _listed(sites: Iterable[tuple[str, Site]]) -> Iterator[str]:
    """Where sites are, what they were and become, and the notes on them."""
    for path, site in sites:
        place = f"{path}:{site.line}:{site.column}"
        # optim.Adam(1e-3) → optax.adam(1e-3)
        change = _short(site.before)
        if site.after:
            change += f" → {_short(site.after)}"
        yield printable(f"    {place}: {change}")
        if site.note:
            yield f"        {click.style('note', fg='blue', bold=True)} {printable(site.note)}"


def _short(code: str) -> str:
    """Code on one line, or the beginning of it."""
    line = " ".join(code.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"
