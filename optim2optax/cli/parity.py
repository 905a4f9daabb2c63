"""`optim2optax parity`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from optim2optax.legacy_wheel import WHEEL_VARIABLE, LegacyWheelError

EXAMPLES = """\b
Examples:
  optim2optax parity src/                     every optimizer in src/, before anything is written
  optim2optax parity --html parity.html src/
  optim2optax parity --before main~3 src/     the code as it is now, against what it was
  optim2optax parity --before main~3 -- python train.py --steps 20
  optim2optax parity --platform cpu --devices 8 --jobs 2 fixtures/
  pytest --parity src/                        the same, as a part of your tests
"""
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
    short_help="Prove that the old and new optimizers are equivalent.",
    epilog=EXAMPLES,
)
@click.argument(
    "paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH...] [-- COMMAND]"
)
@click.option(
    "--before", metavar="REF", help="The old code: a git revision, or a folder."
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    help="Steps of each optimizer.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of parameters and gradients.",
)
@click.option(
    "--platform",
    type=click.Choice(("cpu", "gpu", "tpu")),
    help="Where to compute; by default where JAX does.",
)
@click.option(
    "--devices",
    type=click.IntRange(min=1),
    metavar="N",
    help="Simulate N devices on CPU.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of processes.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop a side of the command after this time; by default only the new one, "
    "after ten times the time of the old one.",
)
@click.option(
    "--link",
    "links",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Link data that git ignores into both copies in which the command runs.",
)
@click.option(
    "--compare",
    "files",
    multiple=True,
    metavar="FILE",
    help="Also compare a file that the command writes: "
    "a path or a pattern, relative to the current folder.",
)
@click.option(
    "--compare-lines",
    "lines",
    multiple=True,
    metavar="REGEX",
    help="Also compare the lines of its standard output that match.",
)
@click.option(
    "-k",
    "expression",
    metavar="EXPRESSION",
    help="Run only cases whose names match: words with and, or, not.",
)
@click.option(
    "--save",
    type=ANYWHERE,
    metavar="FILE",
    help="Store what the old side of scenarios yields.",
)
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Compare scenarios with what --save stored; this needs no old code.",
)
@click.option("--json", type=ANYWHERE, metavar="PATH", help="Write a report as JSON.")
@click.option(
    "--junit", type=ANYWHERE, metavar="PATH", help="Write a report as JUnit XML."
)
@click.option(
    "--markdown",
    type=ANYWHERE,
    metavar="PATH",
    help="Write a report for a pull request.",
)
@click.option(
    "--html",
    type=ANYWHERE,
    metavar="PATH",
    help="Write a report as an HTML page.",
)
@click.option(
    "--legacy-wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The wheel of Flax 0.5.3, for use without a network.",
)
@click.option(
    "--legacy-python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Run the old side of scenarios and of the command with this interpreter, "
    "which has Flax 0.5.3 and an old JAX.",
)
@click.option(
    "--create-legacy-env",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Only create an environment for --legacy-python.",
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
    """Prove that the old and new optimizers are equivalent.

    PATH is a file or directory of legacy code. Each optimizer that `rewrite` would write is
    evaluated, old and new, with sampled values in place of names such as config.lr. Both get the
    same gradients, and float64 decides: identical (the same bits), equivalent (the same function,
    up to rounding) or different. A scenario.py beside a before.py and an after.py calls the
    functions of both.

    With --before, the old side is the code at REF, and the new side is the code as it is now. A
    command behind -- runs on both, each in its own working copy, and every update that it applies
    is compared; with --compare and --compare-lines, also what it writes and prints.

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
    # optim2optax parity --before main~3 -- python train.py --steps 20
    training = context.meta.get("command", [])
    if not paths and not training:
        raise click.UsageError("give files or directories, or a command behind --")
    if (files or lines) and not training:
        raise click.UsageError(
            "--compare and --compare-lines are of a command behind --"
        )
    if training and before is None:
        raise click.UsageError(
            "a command needs --before: the git revision or folder with the old code"
        )
    if save is not None and (jobs > 1 or against is not None):
        raise click.UsageError(
            "--save keeps what one process runs on the old side: give neither --jobs nor --against"
        )
    require_extra()
    from optim2optax.parity.running.devices import prepare
    from optim2optax.parity.running.interpreter import check_legacy_python

    # This comes before JAX is used, which then keeps its devices.
    prepare(platform, devices)
    if legacy_python is not None:
        check_legacy_python(legacy_python)
    if legacy_wheel is not None:
        # Workers, and both sides of a command, need it too.
        os.environ[WHEEL_VARIABLE] = str(legacy_wheel)
    from optim2optax.parity.command.runs import RunOptions
    from optim2optax.parity.session.project import Request
    from optim2optax.parity.session.running import run

    request = Request(
        paths=tuple(Path(path).resolve() for path in paths),
        folder=Path.cwd(),
        before=before,
        against=against,
        steps=steps,
        seed=seed,
        command=tuple(training),
        options=RunOptions(
            timeout,
            [link.absolute() for link in links],
            legacy_python and legacy_python.absolute(),
            [os.path.relpath(file) for file in files],
            [*map(_expression, lines)],
        ),
    )
    if training:
        shown = shlex.join(training)
        click.echo(
            f"Running `{shown}` in copies of {before} and of the code as it is now …",
            err=True,
        )
    outputs = {**reports, "save": save}
    wanted = {name: path for name, path in outputs.items() if path is not None}
    try:
        code = run(request, expression, jobs, wanted)
    except LegacyWheelError as error:
        raise click.UsageError(str(error)) from error
    context.exit(code)


def _create_environment(directory: Path, python: Path | None) -> None:
    """Make an environment for the old side, and print how to use it."""
    from optim2optax.parity.running.interpreter import (
        check_legacy_python,
        create_legacy_environment,
    )

    interpreter = create_legacy_environment(directory, python)
    found = check_legacy_python(interpreter)
    versions = ", ".join(f"{name} {version}" for name, version in found.items())
    click.echo(f"{versions}\nUse it with --legacy-python {interpreter}")


def _expression(text: str) -> str:
    """A regular expression. Raises click.UsageError."""
    try:
        re.compile(text)
    except re.error as error:
        raise click.UsageError(
            f"--compare-lines {shlex.quote(text)}: {error}"
        ) from error
    return text


def require_extra() -> None:
    """Raise click.UsageError if a package is missing that parity needs."""
    from optim2optax.parity import what_is_missing

    reason = what_is_missing()
    if reason:
        raise click.UsageError(reason)
