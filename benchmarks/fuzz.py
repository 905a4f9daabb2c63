"""Programs at random by the ten thousand: which promises do their migrations break, and how often?

`python -m benchmarks.fuzz 50000 --sources TREES --jobs 2` tries so many, half from the grammar and half made by changes of the
fixtures' programs and of files in TREES, in turn with each of the options that the tests have. What breaks a promise goes into
build/fuzz, with the promise as its first line.
"""

from __future__ import annotations

import collections
import hashlib
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NoReturn

import click
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.generated.grammar import programs
from tests.generated.mutations import mutations
from tests.generated.properties import migrated
from tests.generated.test_generated import OPTIONS, sources

PORTION = 250
LIMIT = 60
"""Seconds that a program may take; most take less than a tenth of one."""

KEPT = Path("build/fuzz")
Counts = collections.Counter[str]


def tried(number: int, kind: str, option: str) -> Counts:
    """Try a portion of programs.

    Args:
        number: the portion's, from which all of it follows.
        kind: "grammar" or "changed".
        option: the name of some options.

    Returns:
        How many there were, what became of their sites, and the promises that were broken.
    """
    counts: Counts = collections.Counter()
    strategy: SearchStrategy[bytes] = (
        programs() if kind == "grammar" else mutations(sources())
    )

    @seed(number)
    @settings(
        max_examples=PORTION,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(content=strategy)
    def run(content: bytes) -> None:
        counts[f"programs: {kind}, {option}"] += 1
        signal.alarm(LIMIT)
        try:
            result = migrated(content, OPTIONS[option])
        except Exception as error:  # noqa: BLE001 - a crash is a finding like any other
            promise = (str(error) or type(error).__name__).splitlines()[0]
            counts[f"broken: {kind}"] += 1
            name = hashlib.sha256(content).hexdigest()[:12]
            (KEPT / f"{name}.py").write_bytes(
                f"# {option}: {type(error).__name__}: {promise}\n".encode() + content
            )
        else:
            counts.update(f"sites {site.status}" for site in result.sites)

    signal.signal(signal.SIGALRM, _too_long)
    run()
    signal.alarm(0)
    return counts


def _too_long(*_: object) -> NoReturn:
    raise TimeoutError(f"takes longer than {LIMIT} s")


def portions(many: int, first: int) -> Iterator[tuple[int, str, str]]:
    """The arguments of `tried` for so many programs."""
    turns = [(kind, option) for kind in ("grammar", "changed") for option in OPTIONS]
    for number in range(first, first + many // PORTION):
        yield (number, *turns[number % len(turns)])


@click.command()
@click.argument("many", type=int)
@click.option(
    "--sources",
    "folder",
    type=click.Path(exists=True),
    help="Files to change, beside those of the fixtures.",
)
@click.option(
    "--seed", "first", default=0, show_default=True, help="The first portion's number."
)
@click.option("--jobs", default=os.cpu_count(), show_default=True)
def main(many: int, folder: str | None, first: int, jobs: int) -> None:
    """Try MANY programs at random."""
    KEPT.mkdir(parents=True, exist_ok=True)
    if folder:
        os.environ["OPTIM2OPTAX_SOURCES"] = folder
    began = time.monotonic()
    total: Counts = collections.Counter()
    with ProcessPoolExecutor(jobs) as pool:
        for counts in pool.map(tried, *zip(*portions(many, first), strict=True)):
            total.update(counts)
            done = sum(
                number for what, number in total.items() if what.startswith("programs")
            )
            click.echo(
                f"\r{done:,} programs, {time.monotonic() - began:,.0f} s",
                nl=False,
                err=True,
            )
    click.echo(err=True)
    for what, number in sorted(total.items()):
        click.echo(f"{number:9,}  {what}")


if __name__ == "__main__":
    main()
