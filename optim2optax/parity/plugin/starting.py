"""A session of pytest with this plugin, as `optim2optax parity` starts it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from optim2optax.legacy_wheel import find_wheel
from optim2optax.parity.plugin.session import FAILED, NAME, ParitySession
from optim2optax.parity.running.processes import TEMPORARY, remove_abandoned
from optim2optax.project.replacing import replacing
from optim2optax.workers import safe_path

UNWANTED = ("cacheprovider", "warnings", "hypothesispytest")
"""Plugins of pytest that leave files, warn of the user's code, or import much without use."""

OPTIONS = {"junit": "--junitxml"}
"""The options for reports that pytest itself writes."""


def run(
    paths: Sequence[str],
    options: Sequence[str],
    jobs: int,
    reports: Mapping[str, Path | None],
    expression: str | None,
    before: str | None,
    against: Path | None,
) -> int:
    """Let pytest collect and run the cases, without the settings of the project around.

    Args:
        paths: files and folders.
        options: of the plugin.
        jobs: the number of processes.
        reports: where to write them, by their formats.
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
        # pytest writes them into the folder, so that a report that is there stays if it fails.
        wanted = {name: path for name, path in reports.items() if path is not None}
        for name in wanted:
            option = OPTIONS.get(name, f"--parity-{name}")
            arguments.append(f"{option}={folder / name}")
        # the user's options are for the user's tests
        os.environ.pop("PYTEST_ADDOPTS", None)
        with safe_path():
            # with only a command, there is no file to collect
            pytest.main([*arguments, *(paths or [str(folder)])], plugins=[listener])
        listener.errors += _hand_over(folder, wanted)
    for reason in listener.errors:
        click.echo(f"error: {reason}", err=True)
    if listener.errors:
        return FAILED
    if listener.nothing_found:
        return _nothing_compared(expression, before, against)
    if listener.nothing_ran:
        click.echo("error: no case ran, so nothing is proven", err=True)
    return listener.exit_code


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


def _hand_over(folder: Path, reports: Mapping[str, Path]) -> Iterator[str]:
    """Put the reports at their paths, and give the errors of those that cannot be written."""
    for name, path in reports.items():
        written = folder / name
        if not written.exists():
            continue
        try:
            with replacing(path) as file:
                file.write(written.read_bytes())
        except OSError as error:
            yield f"{path} cannot be written: {error.strerror}"


class Listener:
    """Keeps how a session ended.

    That is the exit code of its report, or 2 if pytest itself failed; whether there was nothing to
    compare; and errors.
    """

    exit_code = FAILED
    nothing_found = False
    nothing_ran = False

    def __init__(self) -> None:
        self.errors: list[str] = []

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

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Take the exit code from the cases that ran."""
        parity = session.config.pluginmanager.get_plugin(NAME)
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            self.nothing_found = True
        if not isinstance(parity, ParitySession):
            return
        self.nothing_ran = not parity.cases
        # A session that was interrupted, or that pytest itself ended, has no result.
        if parity.cases and exitstatus <= pytest.ExitCode.TESTS_FAILED:
            self.exit_code = FAILED if self.errors else parity.report().exit_code
