"""A session of pytest with this plugin, as `optim2optax parity` starts it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from optim2optax.legacy_wheel import find_wheel
from optim2optax.parity import reports
from optim2optax.parity.plugin.session import NAME, ParitySession, is_first_process
from optim2optax.parity.running.processes import TEMPORARY, remove_abandoned
from optim2optax.parity.scenario.baseline import as_bytes
from optim2optax.project.replacing import replacing
from optim2optax.workers import safe_path

UNWANTED = ("cacheprovider", "warnings", "hypothesispytest")
"""Plugins of pytest that leave files, warn of the user's code, or import much without use."""

FAILED = 2
"""The exit code of a run that did not do what it was asked for."""

JUNIT = "junit"
"""The report that pytest itself writes."""


def run(
    paths: Sequence[str],
    options: Sequence[str],
    jobs: int,
    files: Mapping[str, Path | None],
    expression: str | None,
    before: str | None,
    against: Path | None,
) -> int:
    """Let pytest collect and run the cases, without the settings of the project around.

    Args:
        paths: files and folders.
        options: of the plugin.
        jobs: the number of processes.
        files: where to write reports, by their formats, and the baselines to `save`.
        expression: which cases run, as pytest reads it.
        before: the old tree, which is among the options already.
        against: likewise the baseline in its place.

    Returns:
        The exit code.

    Raises:
        LegacyWheelError: if there is no wheel of the old Flax.
    """
    if against is None:
        # once, before several processes need it
        find_wheel()
    listener = Listener()
    with _temporary_folder() as folder:
        arguments = _arguments(folder, options, jobs, expression)
        wanted = {name: path for name, path in files.items() if path is not None}
        if JUNIT in wanted:
            arguments.append(f"--junitxml={folder / JUNIT}")
        # the user's options are for the user's tests
        os.environ.pop("PYTEST_ADDOPTS", None)
        with safe_path():
            # with only a command, there is no file to collect
            status = pytest.main(
                [*arguments, *(paths or [str(folder)])], plugins=[listener]
            )
        if wanted and is_first_process():
            listener.errors += _written(folder, listener.parity, wanted)
    for reason in listener.errors:
        click.echo(f"error: {reason}", err=True)
    if listener.errors:
        return FAILED
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        return _nothing_compared(expression, before, against)
    parity = listener.parity
    if parity is not None and not parity.cases:
        click.echo("error: no case ran, so nothing is proven", err=True)
        return FAILED
    # A session that was interrupted, or that pytest itself ended, has no result.
    if parity is None or status > pytest.ExitCode.TESTS_FAILED:
        return FAILED
    return parity.report().exit_code


def _arguments(
    folder: Path, options: Sequence[str], jobs: int, expression: str | None
) -> list[str]:
    """The arguments of pytest, except the files and the reports."""
    settings = folder / "pytest.ini"
    settings.write_text(
        "[pytest]\naddopts = --import-mode=importlib\npython_files =\n",
        encoding="utf-8",
    )
    arguments = [
        "--parity",
        "-q",
        "--no-header",
        "-rN",
        "--tb=no",
        "--noconftest",
        "--assert=plain",
    ]
    for name in UNWANTED:
        arguments += ["-p", f"no:{name}"]
    arguments += [f"--rootdir={os.getcwd()}", "-c", str(settings), *options]
    # before Python 3.11, other processes would import from the current folder
    if jobs > 1 and hasattr(sys.flags, "safe_path"):
        arguments += ["-n", str(jobs)]
    if expression:
        arguments += ["-k", expression]
    return arguments


def _nothing_compared(
    expression: str | None, before: str | None, against: Path | None
) -> int:
    """Say that there was nothing to compare, and give the exit code.

    It is 0 only if no legacy code was expected, so that no gate passes by mistake.
    """
    if expression:
        reason = f"no case fits -k {shlex.quote(expression)}"
    elif before is not None:
        reason = f"{before} has no legacy optimizer here"
    elif against is not None:
        reason = f"there is no scenario here to compare with {against}"
    else:
        click.echo("There is no legacy optimizer and no scenario here.")
        return 0
    click.echo(f"error: {reason}, so nothing is proven", err=True)
    return FAILED


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder for all temporary files, also of other processes.

    Nothing is left of a process that was killed.
    """
    before = os.environ.get("TMPDIR")
    remove_abandoned(Path(tempfile.gettempdir()))
    prefix = f"{TEMPORARY}{os.getpid()}-"
    with tempfile.TemporaryDirectory(
        prefix=prefix, ignore_cleanup_errors=True
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
    folder: Path, parity: ParitySession | None, wanted: Mapping[str, Path]
) -> Iterator[str]:
    """Write what there is to report, and give the errors of what cannot be written."""
    contents: dict[str, Callable[[], bytes]] = {}
    if (folder / JUNIT).exists():
        contents[JUNIT] = (folder / JUNIT).read_bytes
    if parity is not None and parity.cases:
        report, baselines = parity.report(), parity.project.baselines
        contents["json"] = lambda: reports.render_json(report).encode()
        contents["markdown"] = lambda: reports.render_markdown(report).encode()
        contents["html"] = lambda: reports.render_html(report).encode()
        if baselines:
            contents["save"] = lambda: as_bytes(baselines)
    for name, path in wanted.items():
        try:
            if name in contents:
                with replacing(path) as file:
                    file.write(contents[name]())
        except OSError as error:
            yield f"{path} cannot be written: {error.strerror}"


class Listener:
    """Keeps the plugin of a session, which has the cases, and errors."""

    def __init__(self) -> None:
        self.parity: ParitySession | None = None
        self.errors: list[str] = []

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Take the plugin that the session has."""
        self.parity = session.config.pluginmanager.get_plugin(NAME)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why something could not be collected; of the session, pytest itself says it."""
        if report.failed and report.nodeid:
            self._keep(report.nodeid, report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep why a case failed ahead of any outcome."""
        if report.failed and not hasattr(report, "parity_case"):
            self._keep(report.nodeid, report.longreprtext)

    def _keep(self, name: str, text: str) -> None:
        self.errors.append(f"{name}: {text.strip()}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """End at once, as the words of pytest are about its own options.

        pytest calls this for errors in collection, too.
        """
        if excinfo.type is KeyboardInterrupt:
            raise KeyboardInterrupt
