"""The main job: files in, files rewritten, a result for each out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from codemods.model import EmittedOptimizer, FileResult, Options, Progress, Source
from codemods.sources.prefilter import mentions_legacy

from optim2optax.declaring import Declaring, with_dependencies
from optim2optax.processes import share
from optim2optax.project import (
    Change,
    Found,
    UnreadableError,
    by_repository,
    module_paths,
    read_file,
    root_of,
    shown,
    write_files,
)
from optim2optax.vendoring import Migrate, Vendoring, migrated_with_copies

Prove = Callable[[Sequence[EmittedOptimizer]], Sequence[bool]]
FILES_AT_ONCE = 4
"""As many files are given to a process at a time."""

REFERENCE = re.compile(r"[^\s`'\"(]+\.(?:py|ipynb)\b")


def rewrite_files(
    found: Sequence[Found],
    options: Options,
    *,
    write: bool,
    jobs: int = 1,
    progress: Progress | None = None,
    prove: Prove | None = None,
    vendoring: Vendoring | None = None,
    declaring: Declaring = tuple,
) -> list[FileResult]:
    """Migrate files, those of each repository as one project, and write those that change.

    Args:
      found: the files.
      options: what the user asked for.
      write: whether to write at all.
      jobs: the number of processes.
      progress: is told of each file that is read, taken in, or edited.
      prove: tells of some optimizers which are proven; the others are left as they are, with a reason.
      vendoring: whether what cannot be migrated gets a copy of `flax.optim`, and where.
      declaring: finds the files that declare dependencies; it is asked if code is rewritten, or uses optax.

    Returns:
      A result for each file, in the same order, and then for each new file, and each other one that declares what is not enough
      for them. One that could not be read or written is unchanged and has an `error`.

    Raises:
      LegacyWheelError: if a copy of `flax.optim` is needed and cannot be had; nothing has been written.
    """
    contents: dict[Found, bytes] = {}
    results: dict[Found, FileResult] = {}
    for done, file in enumerate(found, 1):
        if progress is not None:
            progress("Reading", done, len(found))
        try:
            contents[file] = read_file(file)
        except UnreadableError as error:
            results[file] = FileResult(file.path, b"", b"", error=str(error))
    run = partial(_proven, options=options, jobs=jobs, progress=progress, prove=prove)
    declaring = cache(declaring)
    for repository, files in by_repository(contents).items():
        own = {file: contents[file] for file in files}
        migrated = (
            _migrated(own, repository, run, vendoring or Vendoring())
            if _concern(own.values(), options)
            else {}
        )
        declared = partial(_declared, declaring, repository)
        results |= migrated | with_dependencies(own, migrated, options, declared)
    if write:
        changed = {file.location: file for file, result in results.items() if result.changed}
        changes = [_change(place, results[file]) for place, file in changed.items()]
        for place, reason in write_files(changes).items():
            results[changed[place]] = _unwritten(results[changed[place]], reason)
    given = {*found}
    others = [result for file, result in results.items() if file not in given]
    return [
        *(
            results.get(file) or FileResult(file.path, contents[file], contents[file])
            for file in found
        ),
        *others,
    ]


def _change(location: str, result: FileResult) -> Change:
    before, after = (
        (None if result.kind == "new" else result.before),
        (None if result.kind == "deleted" else result.after),
    )
    return Change(location, before, after)


def migrate_sources(sources: Sequence[Source], options: Options) -> list[FileResult]:
    """Run the engine, which is imported only if there is something for it to do."""
    if not _concern((source.content for source in sources), options):
        return [FileResult(source.path, source.content, source.content) for source in sources]
    from codemods import migrate

    return migrate(sources, options)


def _concern(contents: Iterable[bytes], options: Options) -> bool:
    """Whether a project may have something to migrate; if not, not even the engine is imported."""
    return options.modernize or any(map(mentions_legacy, contents))


def _declared(declaring: Declaring, repository: str) -> Sequence[Found]:
    """The files of a repository that declare dependencies."""
    return by_repository(declaring()).get(repository, [])


def _migrated(
    contents: Mapping[Found, bytes], repository: str, run: Migrate, vendoring: Vendoring
) -> dict[Found, FileResult]:
    """What the engine makes of a project, by file; new files are among them."""
    paths = dict(zip(contents, module_paths(list(contents), repository), strict=True))
    sources = [Source(paths[file], content) for file, content in contents.items()]
    migrated = migrated_with_copies(paths, sources, run, vendoring)
    files = {path: file for file, path in paths.items()}
    root = root_of(paths)
    for result in migrated[len(sources) :]:
        location = os.path.join(root, *result.path.split("/"))
        files[result.path] = Found(shown(location), location, os.path.dirname(location))
    names = {path: file.path for path, file in files.items()}
    return {files[result.path]: _with_paths(result, names) for result in migrated}


def _proven(
    sources: Sequence[Source],
    options: Options,
    jobs: int,
    progress: Progress | None,
    prove: Prove | None,
) -> list[FileResult]:
    """What the engine makes of some files; again, and without them, until no optimizer is left that is not proven."""
    from codemods import migrate

    migrated = migrate(
        sources, options, progress, partial(share, jobs=jobs, chunksize=FILES_AT_ONCE)
    )
    proven: dict[EmittedOptimizer, bool] = {}
    while prove is not None and (unproven := _unproven(migrated, prove, proven)):
        options = replace(options, unproven=options.unproven | unproven)
        migrated = migrate(
            sources, options, progress, partial(share, jobs=jobs, chunksize=FILES_AT_ONCE)
        )
    return migrated


def _unproven(
    results: Sequence[FileResult], prove: Prove, proven: dict[EmittedOptimizer, bool]
) -> frozenset[tuple[str, int, str]]:
    """The places of optimizers that are not proven; what is found of each is kept in `proven`."""
    places = [(result.path, optimizer) for result in results for optimizer in result.optimizers]
    if new := [optimizer for _, optimizer in places if optimizer not in proven]:
        proven.update(zip(new, prove(new), strict=True))
    return frozenset(
        (path, optimizer.line, optimizer.before)
        for path, optimizer in places
        if not proven[optimizer]
    )


def _with_paths(result: FileResult, shown: Mapping[str, str]) -> FileResult:
    """The engine names files from the project's root on; people read them from the current folder on."""

    def renamed(text: str) -> str:
        return REFERENCE.sub(lambda match: shown.get(match[0], match[0]), text)

    sites = tuple(
        replace(site, message=renamed(site.message), remedy=site.remedy and renamed(site.remedy))
        for site in result.sites
    )
    return replace(result, path=shown[result.path], sites=sites)


def _unwritten(result: FileResult, reason: str) -> FileResult:
    """The result of a file that stayed as it was: what was rewritten in it was not."""
    left = tuple(
        replace(site, status="unresolved") if site.status == "vendored" else site
        for site in result.sites
        if site.status != "rewritten"
    )
    return FileResult(result.path, result.before, result.before, left, reason)
