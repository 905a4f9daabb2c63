"""`optim2optax checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

EXAMPLES = """\b
Examples:
  optim2optax checkpoint inspect runs/mnist/checkpoint_5000
  optim2optax checkpoint inspect --output-format json runs/mnist/ > contents.json
"""


@click.group(name="checkpoint", short_help="Look into old training checkpoints.", epilog=EXAMPLES)
def command() -> None:
    """Look into the checkpoints of old training runs."""


@command.command(short_help="Tell what is in checkpoints.", epilog=EXAMPLES)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.pass_context
def inspect(context: click.Context, paths: Sequence[Path], output_format: str) -> None:
    """Tell what is in checkpoints: which optimizers and train states, at which place and step, and all else.

    PATH is a file that flax.serialization.to_bytes or flax.training.checkpoints wrote, or a folder with such files, as the latter
    keep them. Nothing in a file is run, and none is changed.

    \b
    Exit codes:
      0  all could be read
      1  one could not
      2  wrong usage, or the packages for it are not installed
    """
    try:
        from optim2optax.checkpoints import CheckpointError, report
        from optim2optax.checkpoints.files import checkpoint_files
    except ModuleNotFoundError as error:
        raise click.UsageError(f'{error.name} is missing; install "optim2optax[checkpoint]"') from error

    inspected = []
    for path in paths:
        try:
            inspected += [report.inspect(file) for file in checkpoint_files(path)]
        except CheckpointError as error:
            inspected.append(report.Inspected(path, 0, None, str(error)))
    click.echo((report.as_json if output_format == "json" else report.as_text)(inspected), nl=False)
    context.exit(1 if any(file.error for file in inspected) else 0)
