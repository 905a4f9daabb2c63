"""How the engine runs: until all is proven, with related files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from codemods.model import EmittedOptimizer, FileResult, Options, Progress, Source

Prove = Callable[[Sequence[EmittedOptimizer]], Sequence[bool]]

Engine = Callable[..., list[FileResult]]
"""Gives a result for each of some sources, and for each new file, by `options`."""


def make_engine(
    *,
    progress: Progress | None = None,
    prove: Prove | None = None,
    with_related: bool = False,
) -> Engine:
    """An engine; `rewriting.rewrite_files` says what the arguments are for."""
    migrate: Engine = partial(_proven, progress=progress, prove=prove)
    return partial(_with_related, migrate) if with_related else migrate


def _with_related(
    migrate: Engine, sources: Sequence[Source], *, options: Options
) -> list[FileResult]:
    """The results of the engine, with files of the context written if optimizers need that."""
    while True:
        results = migrate(sources, options=options)
        wanted: set[str] = set()
        for source, result in zip(sources, results, strict=False):
            if source.writable:
                wanted.update(path for site in result.sites for path in site.related)
        if not wanted:
            return results
        sources = [
            replace(source, writable=source.writable or source.shown in wanted)
            for source in sources
        ]


def _proven(
    sources: Sequence[Source],
    *,
    options: Options,
    progress: Progress | None,
    prove: Prove | None,
) -> list[FileResult]:
    """The results of the engine for some files.

    It runs again, and leaves optimizers that are not proven, until all others are.
    """
    if progress is not None:
        progress("Analysing", 0, 0)
    from codemods import migrate

    migrated = migrate(sources, options, progress)
    if prove is None:
        return migrated
    while unproven := _unproven(migrated, prove):
        # a group may be emitted in another form now, which has to be proven in turn
        options = replace(options, unproven=options.unproven | unproven)
        migrated = migrate(sources, options, progress)
    return migrated


def _unproven(
    results: Sequence[FileResult], prove: Prove
) -> frozenset[tuple[str, int, str]]:
    """The places of optimizers that are not proven."""
    found = [(result.path, one) for result in results for one in result.optimizers]
    proven = prove([optimizer for _, optimizer in found])
    return frozenset(
        (path, optimizer.line, optimizer.before)
        for (path, optimizer), is_proven in zip(found, proven, strict=True)
        if not is_proven
    )
