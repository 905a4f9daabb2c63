"""`optim2optax checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from optim2optax.project.finding import printable

Format = Literal["msgpack", "orbax"]

EXAMPLES = """\b
Examples:
  optim2optax checkpoint inspect runs/mnist/checkpoint_5000
  optim2optax checkpoint inspect --output-format json runs/mnist/ > contents.json
  optim2optax checkpoint convert runs/mnist/checkpoint_5000 runs/optax/checkpoint_5000 --state train:create_state
  optim2optax checkpoint convert --all runs/mnist runs/optax --state train:create_state
"""


@click.group(name="checkpoint", short_help="Look into old training checkpoints, and convert them.", epilog=EXAMPLES)
def command() -> None:
    """Look into the checkpoints of old training runs, and convert them for the migrated program."""


@command.command(short_help="Tell what is in checkpoints.", epilog=EXAMPLES)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--diff", is_flag=True, help="Tell which leaves of two checkpoints differ, and by how much.")
@click.pass_context
def inspect(context: click.Context, paths: Sequence[Path], output_format: str, diff: bool) -> None:
    """Tell what is in checkpoints: which optimizers and train states, at which place and step, and all else.

    PATH is a file that flax.serialization.to_bytes or flax.training.checkpoints wrote, a checkpoint of Orbax, or a folder with
    such checkpoints, numbered by their steps. Nothing in a file is run, and none is changed.

    \b
    Exit codes:
      0  all could be read; with --diff, nothing differs
      1  one could not; with --diff, something differs
      2  wrong usage, or the packages for it are not installed
    """
    try:
        from optim2optax.checkpoints import CheckpointError, report
        from optim2optax.checkpoints.files import checkpoints_at, newest_at, read
    except ModuleNotFoundError as error:
        raise click.UsageError(f'{error.name} is missing; install "optim2optax[checkpoint]"') from error

    if diff:
        if len(paths) != 2:
            raise click.UsageError("--diff takes two checkpoints")
        try:
            found = report.compared(*(read(newest_at(path)) for path in paths))
        except CheckpointError as error:
            click.echo(printable(f"error: {error}"), err=True)
            context.exit(1)
        click.echo(
            (report.differences_as_json if output_format == "json" else report.differences_as_text)(found), nl=False
        )
        context.exit(1 if found else 0)
    inspected = []
    for path in paths:
        try:
            inspected += [report.inspect(file) for file in checkpoints_at(path)]
        except CheckpointError as error:
            inspected.append(report.Inspected(path, 0, None, str(error)))
    click.echo((report.as_json if output_format == "json" else report.as_text)(inspected), nl=False)
    context.exit(1 if any(file.error for file in inspected) else 0)


@command.command(short_help="Convert a checkpoint.", epilog=EXAMPLES)
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--state",
    "factory",
    required=True,
    metavar="MODULE:FUNCTION",
    help="A function of the migrated program, importable from here, that gives its fresh state.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(("msgpack", "orbax")),
    default="msgpack",
    show_default=True,
    help="What to write: a file for flax.serialization and flax.training.checkpoints, or a folder for Orbax.",
)
@click.option(
    "--before",
    metavar="FILE:FUNCTION",
    help="The same function of the program before its migration: a step of both has to be the same.",
)
@click.option(
    "--all", "whole_folder", is_flag=True, help="Convert every checkpoint in the folder OLD, into the folder NEW."
)
@click.option("--dry-run", is_flag=True, help="Do all but write.")
@click.option("--force", is_flag=True, help="Let NEW take the place of one checkpoint.")
@click.pass_context
def convert(
    context: click.Context,
    old: Path,
    new: Path,
    factory: str,
    format_: Format,
    before: str | None,
    whole_folder: bool,
    dry_run: bool,
    force: bool,
) -> None:
    """Convert the legacy checkpoint OLD into NEW, which the migrated program reads.

    OLD is what `inspect` reads; of a folder with several, the one with the highest number is taken.

    The function gives the state that the program starts with: a TrainState, or a dataclass, dict or tuple with some in it. Every
    leaf of OLD finds its place in it, and every place its leaf, or an error names both and nothing is written. OLD is only read.

    With --all, every checkpoint in the folder OLD is converted, and NEW is a folder in which each has the same name.

    With --before, the real flax.optim takes a step from OLD, and the migrated program one from what is to be written.

    \b
    Exit codes:
      0  NEW is there
      1  OLD does not fit, or cannot be read
      2  wrong usage, NEW cannot be written, or the packages for it are not installed
    """
    try:
        from optim2optax.checkpoints import CheckpointError, UnwritableError, converting
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f'{error.name} is missing; install JAX and Flax, and "optim2optax[checkpoint]"'
        ) from error
    try:
        pairs = converting.planned(old, new) if whole_folder else [(old, new)]
        if whole_folder and not dry_run:
            converting.make_folders(target.parent for _, target in pairs)
    except CheckpointError as error:
        click.echo(printable(f"error: {error}"), err=True)
        context.exit(2 if isinstance(error, UnwritableError) else 1)
    code = 0
    for one, target in pairs:
        try:
            source, unusual = converting.convert(one, target, factory, format_, force, before, dry_run)
        except CheckpointError as error:
            click.echo(printable(f"error: {error}"), err=True)
            code = max(code, 2 if isinstance(error, UnwritableError) else 1)
            continue
        for place in unusual:
            words = f"warning: {place} has numbers that are infinite or none, as in the checkpoint."
            click.echo(printable(words), err=True)
        click.echo(printable(f"{target} {'would be' if dry_run else 'is'} written, from {source}."))
    context.exit(code)
