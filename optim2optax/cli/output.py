"""What goes to which stream, and in which colour."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import click

from optim2optax.reporting import Report, render
from optim2optax.reporting.diff import unified_diff

LONG_RUN = 20


def print_report(report: Report, output_format: str, *, code_on_stdout: bool) -> None:
    """Print a report to standard output, or to standard error where standard output holds the code or a diff."""
    aside = code_on_stdout
    if report.diff and output_format == "text":
        aside = True
        for result in report.changed:
            write_bytes(unified_diff(result, colour=wants_colour(sys.stdout)))
    colour = wants_colour(sys.stderr if aside else sys.stdout)
    click.echo(render(report, output_format, colour=colour), err=aside, nl=False, color=colour)


def write_bytes(content: bytes) -> None:
    """Write bytes to standard output as they are."""
    click.echo(content, nl=False)


def wants_colour(stream: IO[Any]) -> bool:
    """A terminal gets colour; NO_COLOR and FORCE_COLOR, if not empty, overrule."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


@contextlib.contextmanager
def progress_bar(length: int) -> Iterator[Callable[[str], None] | None]:
    """On a terminal, and for more than a few files, a bar on standard error; gives what to call for each file done."""
    if length < LONG_RUN or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=length, label="Migrating", file=sys.stderr, show_pos=True) as bar:
        yield lambda _: bar.update(1)
