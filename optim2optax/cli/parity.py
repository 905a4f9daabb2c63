"""`optim2optax parity`."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

EXAMPLES = """\b
Examples:
  optim2optax parity src/                     every optimizer in src/, before anything is written
  optim2optax parity --html parity.html src/
  optim2optax parity --before main~3 src/     the code as it is now, against what it was
  optim2optax parity --before main~3 -- python train.py --steps 20
  optim2optax parity --platform cpu --devices 8 --jobs 2 fixtures/
  pytest --parity src/                        the same, as a part of your tests
"""
UNWANTED = ("cacheprovider", "warnings", "hypothesispytest")
"""Plugins of pytest that leave files, warn of the user's code, or import much without use."""

OPTIONS = {"junit": "--junitxml"}
"""The options for reports that pytest itself writes."""

ANYWHERE = click.Path(dir_okay=False, path_type=Path)


class Parity(click.Command):
    """A command that takes another command behind `--`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Keep the command behind `--`, which is not parsed."""
        if "--" in args:
            index = args.index("--")
            context.meta["command"] = args[index + 1 :]
            args = args[:index]
        return super().parse_args(context, args)


@click.command(
    cls=Parity,
    name="parity",
    short_help="Prove that the new optimizers are the old ones.",
    epilog=EXAMPLES,
)
@click.argument("paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH...] [-- COMMAND]")
@click.option("--before", metavar="REF", help="The old code: a git revision, or a folder.")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    help="Steps of each optimizer.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of parameters and gradients."
)
@click.option(
    "--platform",
    type=click.Choice(("cpu", "gpu", "tpu")),
    help="Where to compute; by default where JAX does.",
)
@click.option("--devices", type=click.IntRange(min=1), metavar="N", help="Feign N devices on CPU.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End a side of the command after that; by default the new one, "
    "after ten times what the old one took.",
)
@click.option(
    "--link",
    "links",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Link it into both copies in which the command runs: data that git ignores.",
)
@click.option(
    "--compare",
    "files",
    multiple=True,
    metavar="FILE",
    help="Compare what the command writes, too: "
    "a path or a pattern of paths, from the current folder.",
)
@click.option(
    "--compare-lines",
    "lines",
    multiple=True,
    metavar="REGEX",
    help="Compare the lines of its standard output that have this in them, too.",
)
@click.option(
    "-k", "expression", metavar="EXPRESSION", help="Only cases whose names fit, as with pytest."
)
@click.option(
    "--save", type=ANYWHERE, metavar="FILE", help="Keep what the old side of scenarios yields."
)
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Compare scenarios with what --save kept: no old code is needed.",
)
@click.option("--json", type=ANYWHERE, metavar="PATH", help="Write a report as JSON.")
@click.option("--junit", type=ANYWHERE, metavar="PATH", help="Write a report as JUnit's XML.")
@click.option(
    "--markdown", type=ANYWHERE, metavar="PATH", help="Write a report for a pull request."
)
@click.option(
    "--html", type=ANYWHERE, metavar="PATH", help="Write a report as one page for a browser."
)
@click.option(
    "--legacy-wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The wheel of Flax 0.5.3, where there is no network to fetch it.",
)
@click.option(
    "--legacy-python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="An interpreter with Flax 0.5.3 and an old JAX, "
    "which runs the old side of scenarios and of the command.",
)
@click.option(
    "--create-legacy-env",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Make an environment for --legacy-python, and do nothing else.",
)
@click.pass_context
def command(
    context: click.Context,
    /,
    paths: Sequence[str],
    before: str | None,
    steps: int,
    seed: int,
    platform: str | None,
    devices: int | None,
    jobs: int,
    timeout: float | None,
    links: Sequence[Path],
    files: Sequence[str],
    lines: Sequence[str],
    expression: str | None,
    legacy_wheel: Path | None,
    legacy_python: Path | None,
    create_legacy_env: Path | None,
    save: Path | None,
    against: Path | None,
    **reports: Path | None,
) -> None:
    """Prove that the new optimizers are the old ones.

    PATH is a file or directory of legacy code. Each optimizer that `rewrite` would emit is
    evaluated, old and new, with sampled values in place of names such as config.lr; both get the
    same gradients, and float64 decides: identical (the same bits), equivalent (the same function,
    up to rounding) or different. A scenario.py beside a before.py and an after.py drives the
    functions of both.

    With --before, the new side is the code as it is now, and the old side what it was. A command
    behind -- is run on both, each in a working copy of its own, and every update that it applies is
    compared; with --compare and --compare-lines, also what it writes and prints.

    \b
    Exit codes:
      0  all are identical or equivalent
      1  a difference was found
      2  a case could not run or proves nothing, or wrong usage
    """
    if create_legacy_env is not None:
        require_extra()
        _create_environment(create_legacy_env, legacy_python)
        return
    training = context.meta.get("command", [])  # python train.py --steps 20
    if not paths and not training:
        raise click.UsageError("give files or directories, or a command behind --")
    if (files or lines) and not training:
        raise click.UsageError("--compare and --compare-lines are of a command behind --")
    if training and before is None:
        raise click.UsageError(
            "a command needs --before: the git revision or folder with the old code"
        )
    if save is not None and (jobs > 1 or against is not None):
        raise click.UsageError(
            "--save keeps what one process runs on the old side: give neither --jobs nor --against"
        )
    require_extra()
    from optim2optax.parity.running.devices import PlatformError, prepare

    # before JAX is used, which then keeps its devices
    try:
        prepare(platform, devices)
    except PlatformError as error:
        raise click.UsageError(str(error)) from error
    if legacy_wheel is not None:
        from optim2optax.legacy_wheel import WHEEL_VARIABLE

        os.environ[WHEEL_VARIABLE] = str(legacy_wheel)
    options = [f"--parity-steps={steps}", f"--parity-seed={seed}"]
    if before is not None:
        options.append(f"--parity-before={before}")
    if legacy_python is not None:
        options.append(f"--parity-legacy-python={_checked(legacy_python)}")
    if save is not None:
        options.append(f"--parity-save={save.absolute()}")
    if against is not None:
        options.append(f"--parity-against={against.absolute()}")
    if training:
        options.append(f"--parity-command={json.dumps(training)}")
    if timeout is not None:
        options.append(f"--parity-timeout={timeout}")
    options += [f"--parity-link={link.absolute()}" for link in links]
    options += [f"--parity-compare={os.path.relpath(file)}" for file in files]
    options += [f"--parity-lines={_expression(line)}" for line in lines]
    if training:
        shown = shlex.join(training)
        click.echo(
            f"Running `{shown}` in copies of {before} and of the code as it is now …", err=True
        )
    context.exit(_run(paths, options, jobs, Selection(expression, before, against), reports))


def _create_environment(directory: Path, python: Path | None) -> None:
    """Make an environment for the old side, and print how to use it."""
    from optim2optax.parity.running.interpreter import (
        LegacyEnvironmentError,
        check_legacy_python,
        create_legacy_environment,
    )

    try:
        interpreter = create_legacy_environment(directory, str(python) if python else None)
    except LegacyEnvironmentError as error:
        raise click.UsageError(str(error)) from error
    found = check_legacy_python(interpreter)
    versions = ", ".join(f"{name} {version}" for name, version in found.items())
    click.echo(f"{versions}\nUse it with --legacy-python {interpreter}")


def _checked(python: Path) -> Path:
    """An interpreter that can run the old side. Raises click.UsageError."""
    from optim2optax.parity.running.interpreter import LegacyEnvironmentError, check_legacy_python

    try:
        check_legacy_python(python)
    except LegacyEnvironmentError as error:
        raise click.UsageError(str(error)) from error
    return python.absolute()


def _expression(text: str) -> str:
    """A regular expression. Raises click.UsageError."""
    try:
        re.compile(text)
    except re.error as error:
        raise click.UsageError(f"--compare-lines {shlex.quote(text)}: {error}") from error
    return text


def require_extra() -> None:
    """Raise click.UsageError if a package is missing that parity needs."""
    from optim2optax.parity import what_is_missing

    reason = what_is_missing()
    if reason:
        raise click.UsageError(reason)


@dataclass(frozen=True)
class Selection:
    """Which cases run: an expression of pytest, and the old tree or the baseline in its place."""

    expression: str | None
    before: str | None
    against: Path | None


def _run(
    paths: Sequence[str],
    options: Sequence[str],
    jobs: int,
    selection: Selection,
    reports: dict[str, Path | None],
) -> int:
    """Let pytest collect and run the cases, without the settings of the project around.

    Returns:
      The exit code.
    """
    import pytest

    from optim2optax.legacy_wheel import LegacyWheelError, find_wheel
    from optim2optax.parity.plugin.outcome import Listener
    from optim2optax.parity.plugin.writing import FAILED

    try:
        if selection.against is None:
            # once, before several processes need it
            find_wheel()
    except LegacyWheelError as error:
        raise click.UsageError(str(error)) from error
    listener = Listener()
    with _temporary_folder() as folder:
        arguments = _arguments(folder, options, jobs, selection.expression)
        wanted = {name: path for name, path in reports.items() if path is not None}
        for name in wanted:
            option = OPTIONS.get(name, f"--parity-{name}")
            arguments.append(f"{option}={folder / name}")
        # the user's options are for the user's tests
        os.environ.pop("PYTEST_ADDOPTS", None)
        with _safe_path():
            # with only a command, there is no file to collect
            pytest.main([*arguments, *(paths or [str(folder)])], plugins=[listener])
        listener.errors += _hand_over(folder, wanted)
    for reason in listener.errors:
        click.echo(f"error: {reason}", err=True)
    if listener.errors:
        return FAILED
    if listener.nothing_found:
        return _nothing_compared(selection)
    if listener.nothing_ran:
        click.echo("error: no case ran, so nothing is proven", err=True)
    return listener.exit_code


def _arguments(
    folder: Path, options: Sequence[str], jobs: int, expression: str | None
) -> list[str]:
    """The arguments of pytest, except the files and the reports."""
    settings = folder / "pytest.ini"
    settings.write_text(
        "[pytest]\naddopts = --import-mode=importlib\npython_files =\n", encoding="utf-8"
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


def _nothing_compared(selection: Selection) -> int:
    """Say that there was nothing to compare, and give the exit code.

    It is 0 only if no legacy code was expected, so that no gate passes by mistake.
    """
    if selection.expression:
        reason = f"no case fits -k {shlex.quote(selection.expression)}"
    elif selection.before is not None:
        reason = f"{selection.before} has no legacy optimizer here"
    elif selection.against is not None:
        reason = f"there is no scenario here to compare with {selection.against}"
    else:
        click.echo("There is no legacy optimizer and no scenario here.")
        return 0
    click.echo(f"error: {reason}, so nothing is proven", err=True)
    return 2


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the processes of `--jobs` from importing modules of the current folder.

    Before Python 3.11 there are no such processes.
    """
    from optim2optax.parity.command.side import OUR_SAFE_PATH, SAFE_PATH

    before = os.environ.setdefault(SAFE_PATH, OUR_SAFE_PATH)
    try:
        yield
    finally:
        if before == OUR_SAFE_PATH:
            os.environ.pop(SAFE_PATH, None)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder for all temporary files, also of other processes.

    Nothing is left of a process that was killed.
    """
    from optim2optax.parity.running.processes import TEMPORARY, remove_abandoned

    before = os.environ.get("TMPDIR")
    remove_abandoned(Path(tempfile.gettempdir()))
    prefix = f"{TEMPORARY}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
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


def _hand_over(folder: Path, reports: dict[str, Path]) -> Iterator[str]:
    """Put the reports at their paths, and give the errors of those that cannot be written."""
    from optim2optax.project.replacing import replacing

    for name, path in reports.items():
        if (folder / name).exists():
            try:
                with replacing(path) as file:
                    file.write((folder / name).read_bytes())
            except OSError as error:
                yield f"{path} cannot be written: {error.strerror}"
