"""The output of a command, and options that several commands have."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

import click

from codemods.model import Progress, Stage
from optim2optax.cli.colour import wants_colour
from optim2optax.reporting import Report, render
from optim2optax.reporting.diff import unified_diff

WIDTH = 30
INTERVAL = 0.1
"""The least number of seconds between two numbers in the line of progress."""

TEXT_OR_JSON = click.option(
    "--output-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
)
EXCLUDE = click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Skip these paths (.gitignore syntax).",
)


def print_report(report: Report, output_format: str, *, code_on_stdout: bool) -> None:
    """Print a report to standard output, or to standard error beside code or a diff."""
    has_diff = report.diff and output_format == "text"
    for result in report.changed if has_diff else ():
        click.echo(unified_diff(result, colour=wants_colour(sys.stdout)), nl=False)
    click.echo(render(report, output_format), err=code_on_stdout or has_diff, nl=False)


@contextlib.contextmanager
def progress_line() -> Iterator[Progress | None]:
    """On a terminal, a line on standard error with the progress of a run, which then disappears.

    Gives the function to call with the progress; None if there is no such line.
    """
    if not sys.stderr.isatty():
        yield None
        return
    line = _ProgressLine()
    try:
        yield line.tell
    finally:
        line.write("")


class _ProgressLine:
    """A line that is written over. Other output begins in its first column."""

    def __init__(self) -> None:
        self.stage = ""
        self.due = 0.0

    def tell(self, stage: Stage, done: int, of: int) -> None:
        """Show a new stage and the end of one at once, and otherwise some numbers in a second."""
        now = time.monotonic()
        if stage != self.stage or done == of or now >= self.due:
            self.stage = stage
            self.due = now + INTERVAL
            # the total may be unknown
            self.write(f"{stage} {done}/{of}" if of else f"{stage} {done}")

    def write(self, text: str) -> None:
        click.echo(f"{text:{WIDTH}}\r", file=sys.stderr, nl=False)
