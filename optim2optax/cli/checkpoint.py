"""`optim2optax checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import click

from optim2optax.cli.output import TEXT_OR_JSON
from optim2optax.wording import command_to_install, printable

Format = Literal["msgpack", "orbax"]
EXAMPLES = """\b
Examples:
  optim2optax checkpoint inspect runs/mnist/checkpoint_5000
  optim2optax checkpoint inspect --output-format json runs/mnist/ > contents.json
  optim2optax checkpoint convert runs/mnist/checkpoint_5000 runs/optax/checkpoint_5000 \
--state train:create_state
  optim2optax checkpoint convert --all runs/mnist runs/optax --state train:create_state
"""


@click.group(
    name="checkpoint",
    short_help="Inspect and convert old training checkpoints.",
    epilog=EXAMPLES,
)
def command() -> None:
    """Inspect the checkpoints of old training runs, and convert them for the migrated program."""


@command.command(short_help="List the contents of checkpoints.", epilog=EXAMPLES)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@TEXT_OR_JSON
@click.option(
    "--diff",
    is_flag=True,
    help="List which leaves of two checkpoints differ, and by how much.",
)
@click.pass_context
def inspect(
    context: click.Context, paths: Sequence[str], output_format: str, diff: bool
) -> None:
    """List the contents of checkpoints: optimizers and train states, with their place and step, \
and everything else.

    PATH is a file that flax.serialization.to_bytes or flax.training.checkpoints wrote, a checkpoint
    of Orbax, or a folder with such checkpoints, numbered by their steps. It may also be an address
    of one of these, such as gs://bucket/run, which fsspec opens. Nothing in a file is run, and none
    is changed.

    \b
    Exit codes:
      0  all could be read; with --diff, nothing differs
      1  one could not; with --diff, something differs
      2  wrong usage, or the packages for it are not installed
    """  # noqa: D205 - the summary is the first paragraph of the help
    try:
        from optim2optax.checkpoints import CheckpointError, listing
        from optim2optax.checkpoints.files import checkpoints_at
        from optim2optax.checkpoints.remote import local_copies
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"{error.name} is missing: {command_to_install('checkpoint')}"
        ) from error

    if diff:
        _print_differences(context, paths, output_format)
        return
    inspected: list[listing.Inspected] = []
    with local_copies() as copies:
        for path in paths:
            try:
                files = checkpoints_at(copies.copy_of(path, everything=True))
                inspected += [listing.inspect(file) for file in files]
            except CheckpointError as error:
                inspected.append(listing.Inspected(path, 0, error=str(error)))
    as_lines = listing.as_json if output_format == "json" else listing.as_text
    click.echo(copies.named(as_lines(inspected)), nl=False)
    context.exit(1 if any(file.error for file in inspected) else 0)


def _print_differences(
    context: click.Context, paths: Sequence[str], output_format: str
) -> None:
    """Print which leaves of two checkpoints differ, and exit."""
    from optim2optax.checkpoints import CheckpointError, listing
    from optim2optax.checkpoints.differing import differences
    from optim2optax.checkpoints.files import newest_at, read
    from optim2optax.checkpoints.remote import local_copies

    if len(paths) != 2:  # inspect --diff old
        raise click.UsageError("--diff takes two checkpoints")
    try:
        with local_copies() as copies:
            first, second = [read(newest_at(copies.copy_of(path))) for path in paths]
            found = list(differences(first, second))
    except CheckpointError as error:
        click.echo(printable(f"error: {copies.named(str(error))}"), err=True)
        context.exit(1)
    as_lines = listing.differences_as_text
    if output_format == "json":
        as_lines = listing.differences_as_json
    click.echo(as_lines(found), nl=False)
    context.exit(1 if found else 0)


@command.command(short_help="Convert a checkpoint.", epilog=EXAMPLES)
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.option(
    "--state",
    "factory",
    required=True,
    metavar="MODULE:FUNCTION",
    help="A function of the migrated program, importable from here, that returns its first state.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(("msgpack", "orbax")),
    default="msgpack",
    show_default=True,
    help="What to write: a file for flax.serialization and flax.training.checkpoints, "
    "or a folder for Orbax.",
)
@click.option(
    "--before",
    metavar="FILE:FUNCTION",
    help="The same function of the program before its migration: "
    "checks that both take the same step.",
)
@click.option(
    "--all",
    "whole_folder",
    is_flag=True,
    help="Convert every checkpoint in the folder OLD, into the folder NEW.",
)
@click.option(
    "--params-only",
    is_flag=True,
    help="Take the parameters alone, for another optimizer; moments and steps start from zero.",
)
@click.option("--dry-run", is_flag=True, help="Do everything except writing.")
@click.option("--force", is_flag=True, help="Allow NEW to replace one checkpoint.")
@click.pass_context
def convert(
    context: click.Context,
    old: str,
    new: str,
    factory: str,
    format_: Format,
    before: str | None,
    whole_folder: bool,
    params_only: bool,
    dry_run: bool,
    force: bool,
) -> None:
    """Convert the legacy checkpoint OLD into NEW, which the migrated program reads.

    OLD is anything that `inspect` reads; in a folder with several checkpoints, the one with the
    highest number is used. NEW may be the address of one file.

    The function returns the state that the program starts with: a TrainState, or a dataclass, dict
    or tuple with some in it. Every leaf of OLD needs a place in it, and every place a leaf;
    otherwise an error names both and nothing is written. OLD is only read.

    With --all, every checkpoint in the folder OLD is converted, and NEW is a folder in which each
    has the same name.

    With --before, the real flax.optim takes a step from OLD, and the migrated program one from the
    converted state; both must agree.

    \b
    Exit codes:
      0  NEW is there
      1  OLD does not fit, or cannot be read
      2  wrong usage, NEW cannot be written, or the packages for it are not installed
    """
    try:
        # these import JAX and Flax
        from optim2optax.checkpoints import (
            CheckpointError,
            OtherOptimizerError,
            converting,
        )
        from optim2optax.checkpoints.remote import is_address, local_copies
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"{error.name} is missing: {command_to_install('parity')}"
        ) from error
    # Orbax writes a folder
    if is_address(new) and (whole_folder or format_ == "orbax"):
        raise click.UsageError(
            "at an address, one file can be written: give a folder of this machine, and copy that"
        )

    if params_only and before is not None:
        raise click.UsageError(
            "--before compares a step, which is another one with --params-only"
        )
    code = 0
    verb = "would be" if dry_run else "is"
    with local_copies() as copies:

        def tell(words: str, err: bool = True) -> None:
            click.echo(printable(copies.named(words)), err=err)

        try:
            target = copies.place_for(new)
            source = copies.copy_of(old, everything=whole_folder)
            pairs = [(source, target)]
            if whole_folder:
                pairs = converting.planned(source, target)
        except CheckpointError as error:
            tell(f"error: {error}")
            context.exit(error.exit_code)
        for one, target in pairs:
            # with --all, the others are converted even if one is not
            try:
                source, unusual = converting.convert(
                    one, target, factory, format_, force, before, dry_run, params_only
                )
                if not dry_run:
                    copies.send(target)
            except CheckpointError as error:
                tell(f"error: {error}")
                if isinstance(error, OtherOptimizerError):
                    tell(
                        "    --params-only takes the parameters alone; moments and steps restart"
                    )
                code = max(code, error.exit_code)
                continue
            warning = "has numbers that are infinite or none, as in the checkpoint."
            for place in unusual:
                tell(f"warning: {place} {warning}")
            alike = "" if before is None else ", and takes the same step as before"
            tell(f"{target} {verb} written, from {source}{alike}.", err=False)
    context.exit(code)
