"""A session as `optim2optax parity` runs it: its cases, by several processes, and its reports."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import click
import jax

from optim2optax.legacy_wheel import find_wheel
from optim2optax.parity.pairing.counterpart import paired_count
from optim2optax.parity.reports.rendering import render
from optim2optax.parity.reports.result import Case, Report, environment, urgency
from optim2optax.parity.scenario.baseline import as_bytes
from optim2optax.parity.scenario.tape import Tape
from optim2optax.parity.session.project import Project, Request
from optim2optax.parity.session.tasks import Task, selecting, tasks
from optim2optax.project.replacing import replacing
from optim2optax.workers import share

FAILED = 2
"""The exit code of a run that did not do what it was asked for."""


def run(
    request: Request, expression: str | None, jobs: int, files: Mapping[str, Path]
) -> int:
    """Run the cases that an expression selects, report on them, and give the exit code.

    `files` are where to write reports, by their formats, and the baselines to `save`.

    Raises:
        LegacyWheelError: if there is no wheel of the old Flax.
        UsageError: if there is no old tree, or the expression is none.
    """
    selects = selecting(expression)
    if request.against is None:
        # once, before several processes need it
        find_wheel()
    with _temporary_folder() as folder:
        project = Project(request, folder)
        chosen = [*tasks(project, selects)]
        if not chosen:
            return _nothing_compared(project, expression)
        if request.before is not None and request.paths:
            click.echo(paired_count([*chain.from_iterable(project.emitted.values())]))
        cases: list[Case] = []
        baselines: dict[str, Tape] = {}
        for task, case in zip(chosen, share(Task.run, chosen, jobs), strict=True):
            cases.append(case)
            _show(f"Comparing {len(cases)}/{len(chosen)}")
            if "save" in files and case.comparison is not None and task.baseline:
                # The comparison does not have the values.
                baselines[case.name] = task.baseline()
        _show("")
        report = Report(tuple(sorted(cases, key=urgency)), environment(request.seed))
        # That is process 0 among those of `jax.distributed`, or the only one.
        if jax.process_index() != 0:
            return report.exit_code
        click.echo(render(report, "text"), nl=False)
        errors = [*_written(report, baselines, files)]
    for reason in errors:
        click.echo(f"error: {reason}", err=True)
    return FAILED if errors else report.exit_code


def _show(progress: str) -> None:
    """On a terminal, a line that is written over."""
    if sys.stderr.isatty():
        click.echo(f"{progress:30}\r", nl=False, err=True)


def _nothing_compared(project: Project, expression: str | None) -> int:
    """Say that there was nothing to compare, and give the exit code.

    It is 0 only if no legacy code was expected, so that no gate passes by mistake.
    """
    request = project.request
    if expression:
        reason = f"no case fits -k {shlex.quote(expression)}"
    elif request.before is not None and any(
        result.sites for result in project.rewritten.values()
    ):
        reason = (
            f"{request.before} has no optimizer here that can be compared without its program; "
            "a command behind -- compares whole runs"
        )
    elif request.before is not None:
        reason = f"{request.before} has no legacy optimizer here"
    elif request.against is not None:
        reason = f"there is no scenario here to compare with {request.against}"
    else:
        click.echo("There is no legacy optimizer and no scenario here.")
        return 0
    click.echo(f"error: {reason}, so nothing is proven", err=True)
    return FAILED


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder for all temporary files, also of other processes that are killed."""
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(
        prefix="optim2optax-", ignore_cleanup_errors=True
    ) as folder:
        # `tempfile` asks for TMPDIR once, and other processes inherit it
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = None
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before


def _written(
    report: Report, baselines: Mapping[str, Tape], files: Mapping[str, Path]
) -> Iterator[str]:
    """Write the reports, and give the errors of what cannot be written."""
    for name, path in files.items():
        try:
            with replacing(path) as file:
                if name == "save":
                    file.write(as_bytes(baselines))
                else:
                    file.write(render(report, name).encode())
        except OSError as error:
            yield f"{path} cannot be written: {error.strerror}"
