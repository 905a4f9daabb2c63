"""Programs whose numbers depend on what values are when they run: is each migrated and equal, or refused with a word?

`python -m benchmarks.values --programs 4000 --jobs 2` prints how many became what, and the same for each piece of the programs of
which any was not migrated. A program that breaks a promise goes into build/values, with what happened as its first line.
"""

from __future__ import annotations

import os
from functools import partial

import click

from benchmarks.flows import OPTIONS, try_all
from tests.generated.values import FAMILIES, values


@click.command()
@click.option("--programs", default=2000, show_default=True)
@click.option(
    "--seed", "first", default=0, show_default=True, help="The first portion's number."
)
@click.option("--jobs", default=os.cpu_count(), show_default=True)
@click.option(
    "--option", default="by default", show_default=True, type=click.Choice([*OPTIONS])
)
@click.option("--family", type=click.Choice([*FAMILIES]), help="One family alone.")
@click.option(
    "--into",
    default="build/values",
    show_default=True,
    help="The folder for what breaks a promise.",
)
def main(
    programs: int, first: int, jobs: int, option: str, family: str | None, into: str
) -> None:
    """Try so many programs at random."""
    make = partial(values, family=family or "")
    try_all(make, programs, first, jobs, option, into)


if __name__ == "__main__":
    main()
