"""Programs in which an optimizer passes through ordinary Python: is each migrated whole, and equal, or refused whole?

`python -m benchmarks.flows --programs 20000 --seed 0 --jobs 2` prints how many became what, and for each carrier how many were
refused. A program that breaks a promise goes into build/flows, with what happened as its first line.
"""

from __future__ import annotations

import collections
import hashlib
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import NoReturn

import click

from codemods import Options
from tests.generated.flows import flow
from tests.generated.writing import Flow

PORTION = 100
LIMIT = 60
"""Seconds of computing that a program may take; most take less than a tenth of one."""

OPTIONS = {
    "by default": Options(),
    "rename": Options(rename=True, modernize=True),
    "functional": Options(style="functional"),
    "chain": Options(form="chain"),
}
Counts = collections.Counter[tuple[str, str]]
"""By a carrier, or "" for all, and what became of a program."""


Make = Callable[[Random], Flow]
"""Draws a program."""


def tried(make: Make, number: int, option: str, into: str) -> Counts:
    """Try a portion of programs.

    Args:
        make: draws each of them.
        number: the portion's, from which all of it follows.
        option: the name of some options.
        into: the folder for those that break a promise.

    Returns:
        How many became what, with each carrier and in all.
    """
    _prepare()
    import jax

    counts: Counts = collections.Counter()
    for program in range(number * PORTION, (number + 1) * PORTION):
        generated = make(Random(program))
        became = _became(generated, OPTIONS[option], Path(into))
        for carrier in ("", *sorted({*generated.carriers})):
            counts[carrier, became] += 1
    jax.clear_caches()  # type: ignore[no-untyped-call]
    return counts


def _prepare() -> None:
    """Set what JAX reads when it is first imported, and the clock that stops what takes too long."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # most programs compile what others have compiled
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", "build/compiled")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _too_long)


def _too_long(*_: object) -> NoReturn:
    raise TimeoutError(f"takes longer than {LIMIT} s")


def _became(generated: Flow, options: Options, into: Path) -> str:
    """What became of a program, which is kept if that breaks a promise."""
    from tests.generated.verdicts import KEPT, InvalidProgramError, verdict

    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        found = verdict(generated.files, options)
    except InvalidProgramError as error:
        became, why, after = "invalid", str(error), generated.files
    else:
        became, why, after = found.kind, found.why, {**found.after}
        if became == "half migrated" and not found.said:
            became = "half migrated without a word"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if became not in KEPT:
        _keep(generated, became, why, after, into)
    return became


def _keep(
    generated: Flow, became: str, why: str, after: dict[str, str], into: Path
) -> None:
    text = "".join(f"# ---- {path}\n{code}" for path, code in generated.files.items())
    name = hashlib.sha256(text.encode()).hexdigest()[:12]
    folder = into / became.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    header = f"# {why}\n# {'; '.join(generated.carriers)}\n"
    (folder / f"{name}.py").write_text(header + text)
    (folder / f"{name}.after.py").write_text(
        "".join(f"# ---- {path}\n{code}" for path, code in after.items())
    )


def _table(counts: Counts) -> Iterator[str]:
    """The totals, and a line for each carrier of which any program was not migrated."""
    every = sum(number for (carrier, _), number in counts.items() if not carrier)
    for (carrier, became), number in counts.most_common():
        if not carrier:
            yield f"{number:9,}  {100 * number / every:6.2f} %  {became}"
    yield ""
    for carrier in sorted(
        {carrier for carrier, became in counts if carrier and became != "equal"}
    ):
        of = {
            became: number
            for (other, became), number in counts.items()
            if other == carrier
        }
        parts = ", ".join(f"{number} {became}" for became, number in sorted(of.items()))
        yield f"{100 * of.get('refused', 0) / sum(of.values()):6.1f} % refused  {carrier}: {parts}"


@click.command()
@click.option("--programs", default=2000, show_default=True)
@click.option(
    "--seed", "first", default=0, show_default=True, help="The first portion's number."
)
@click.option("--jobs", default=os.cpu_count(), show_default=True)
@click.option(
    "--option", default="by default", show_default=True, type=click.Choice([*OPTIONS])
)
@click.option(
    "--into",
    default="build/flows",
    show_default=True,
    help="The folder for what breaks a promise.",
)
def main(programs: int, first: int, jobs: int, option: str, into: str) -> None:
    """Try so many programs at random."""
    try_all(flow, programs, first, jobs, option, into)


def try_all(
    make: Make, programs: int, first: int, jobs: int, option: str, into: str
) -> None:
    """Try so many programs, and print what became of them."""
    began = time.monotonic()
    total: Counts = collections.Counter()
    portions = range(first, first + -(-programs // PORTION))
    with ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        every = len(portions)
        arguments = [make] * every, portions, [option] * every, [into] * every
        for counts in pool.map(tried, *arguments):
            total.update(counts)
            done = sum(number for (carrier, _), number in total.items() if not carrier)
            click.echo(
                f"\r{done:,} programs, {time.monotonic() - began:,.0f} s",
                nl=False,
                err=True,
            )
    click.echo(err=True)
    for line in _table(total):
        click.echo(line)


if __name__ == "__main__":
    main()
