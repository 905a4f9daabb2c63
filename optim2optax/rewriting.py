"""The main job: files in, files rewritten, a result for each out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from codemods.model import (
    EmittedOptimizer,
    FileResult,
    Options,
    Progress,
    Site,
    Source,
)
from codemods.sources.prefilter import may_use, mentions_legacy
from optim2optax.project import (
    NOTHING,
    FileChange,
    Found,
    Patterns,
    UncommittedError,
    UnreadableError,
    by_repository,
    read_file,
    root_of,
    shown,
    uncommitted,
    write_files,
)
from optim2optax.requirements import Declaring, with_dependencies
from optim2optax.vendoring import Migrate, may_concern, migrated_with_copies
from optim2optax.workers import share

Results = dict[Found, FileResult]
Prove = Callable[[Sequence[EmittedOptimizer]], Sequence[bool]]
Context = Callable[[Sequence[Found]], Sequence[Found]]
"""Finds the rest of the projects that some files are of."""

SMALLEST_PARALLEL = 32
"""With fewer files that speak of optimizers, starting processes costs more than it saves."""


def rewrite_files(
    found: Sequence[Found],
    options: Options,
    *,
    write: bool,
    allow_dirty: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
    prove: Prove | None = None,
    vendor: bool = False,
    declaring: Declaring = tuple,
    context: Context = tuple,
    with_related: bool = False,
    exclude: Patterns = NOTHING,
    read: Mapping[Found, bytes] | None = None,
) -> list[FileResult]:
    """Migrate files, those of each repository as one project, and write those that change.

    The rest of their projects is read, so that optimizers that are used there as well stay.

    Args:
      found: the files.
      options: what the user asked for.
      write: whether to write at all.
      allow_dirty: whether to overwrite changes that git could not give back.
      jobs: the number of processes, which share several repositories.
      progress: is called for each file that is read, analysed, or edited.
      prove: says which of some optimizers are proven; the others are left as they are, with a
        reason.
      vendor: whether code that cannot be migrated gets a copy of what it needs.
      declaring: finds the files that declare dependencies; it is called if code is rewritten, or
        uses optax.
      context: finds the rest of the projects; it is called if a file may use an optimizer.
      with_related: whether the files there that such optimizers are used in are written, too.
      exclude: of these, what is never written.
      read: the contents of the files, if they are not on the disk.

    Returns:
      A result for each file, in the same order, then for each new file, each other file that is
      written, and each whose declared dependencies are not enough for the code. A file that could
      not be read or written is unchanged and has an `error`.

    Raises:
      LegacyWheelError: if a copy is needed and cannot be made; nothing has been
        written.
      UncommittedError: if a file that would change has changes in it that are neither committed
        nor staged, and `allow_dirty` is not set; nothing has been written.
    """
    results: Results = {}
    contents = dict(read) if read else _read(found, progress, results)
    projects = _projects(contents, context)
    # `prove` runs programs, and --vendor adds files, which is done one after the other
    jobs = 1 if prove or vendor else jobs
    related = exclude if with_related else None
    migrate = partial(_results, options=options, prove=prove, related=related)
    migrated = _migrated_projects(projects, options, migrate, vendor, jobs, progress)
    # all repositories share one search for the files that declare dependencies
    declaring = cache(declaring)
    for repository, own in projects.items():
        declared = partial(_declared, declaring, repository)
        results |= _with_declared(own, migrated.get(repository, {}), options, declared)
    if write:
        changed = [file for file, result in results.items() if result.changed]
        dirty = [] if allow_dirty else uncommitted(changed)
        if dirty:
            raise UncommittedError(dirty)
        if progress is not None:
            progress("Writing", 0, len(changed))
        _write(results)
    given = {*found}
    others = [result for file, result in results.items() if file not in given]
    named = [results.get(file) or _untouched(file, contents[file]) for file in found]
    return [*named, *others]


def _projects(
    named: Mapping[Found, bytes], context: Context
) -> dict[str, dict[Found, bytes]]:
    """The files by repository, with the rest of the projects of those that may use an optimizer."""
    contents = dict(named)
    users = [file for file, content in named.items() if may_use(content)]
    if users:
        known = {file.location for file in named}
        others = [file for file in context(users) if file.location not in known]
        # what cannot be read there is not asked for
        contents |= _read(others, None, {})
    projects: dict[str, dict[Found, bytes]] = {}
    for repository, files in by_repository(contents).items():
        # not a repository within the project
        if not all(file.is_context for file in files):
            projects[repository] = {file: contents[file] for file in files}
    return projects


def _untouched(file: Found, content: bytes) -> FileResult:
    return FileResult(file.path, content, content)


def _with_declared(
    contents: Mapping[Found, bytes],
    migrated: Results,
    options: Options,
    declaring: Declaring,
) -> Results:
    """The results for the files of a project, of its code and of its dependencies."""
    own = {
        file: content
        for file, content in contents.items()
        if not file.is_context or file in migrated
    }
    return migrated | with_dependencies(own, migrated, options, declaring)


def _migrated_projects(
    projects: Mapping[str, Mapping[Found, bytes]],
    options: Options,
    migrate: Callable[..., list[FileResult]],
    vendor: bool,
    jobs: int,
    progress: Progress | None,
) -> dict[str, Results]:
    """The results of the engine by repository, without those that it need not look at."""
    work = [
        (repository, contents)
        for repository, contents in projects.items()
        if concern(contents.values(), options, vendor)
    ]
    speaking = sum(
        mentions_legacy(code) for _, files in work for code in files.values()
    )
    if len(work) < 2 or speaking < SMALLEST_PARALLEL:
        jobs = 1
    # the largest first, so that none is left alone at the end
    work.sort(key=lambda item: -sum(map(len, item[1].values())))
    # another process cannot tell its progress
    migrate = partial(migrate, progress=progress if jobs == 1 else None)
    done = share(partial(_migrated, migrate=migrate, vendor=vendor), work, jobs)
    found: dict[str, Results] = {}
    for (repository, _), results in zip(work, done, strict=True):
        found[repository] = results
        if progress is not None and jobs > 1:
            progress("Analysing", len(found), len(work))
    return found


def _read(
    found: Sequence[Found], progress: Progress | None, results: Results
) -> dict[Found, bytes]:
    """The contents of files; `results` gets those that cannot be read."""
    contents: dict[Found, bytes] = {}
    for done, file in enumerate(found, 1):
        if progress is not None:
            progress("Reading", done, len(found))
        try:
            contents[file] = read_file(file.location)
        except UnreadableError as error:
            results[file] = FileResult(file.path, b"", b"", error=str(error))
    return contents


def _write(results: Results) -> None:
    """Write the files that change; results of files that cannot be written get an error."""
    changed = {
        file.location: file for file, result in results.items() if result.changed
    }
    changes: list[FileChange] = []
    for place, file in changed.items():
        result = results[file]
        # None: there is no file
        before = None if result.kind == "new" else result.before
        changes.append(FileChange(place, before, result.after))
    for place, reason in write_files(changes).items():
        file = changed[place]
        results[file] = _unwritten(results[file], reason)


def _results(
    sources: Sequence[Source],
    *,
    options: Options,
    progress: Progress | None = None,
    prove: Prove | None = None,
    related: Patterns | None = None,
) -> list[FileResult]:
    """The results of the engine.

    It runs again, and leaves optimizers that are not proven, until all others are; and with files
    of the context written, if optimizers need that: but for those that `related` excludes, or none
    without it. `rewrite_files` says what the other arguments are.
    """
    if progress is not None:
        progress("Analysing", 0, 0)
    from codemods import migrate

    while True:
        results = migrate(sources, options, progress)
        # a group may be emitted in another form now, which has to be proven in turn
        unproven = _unproven(results, prove) if prove else None
        if unproven:
            options = replace(options, unproven=options.unproven | unproven)
            continue
        wanted = {
            path
            for source, result in zip(sources, results, strict=False)
            if source.writable and related is not None
            for site in result.sites
            for path in site.related
            if not related.verdict(os.path.abspath(path))
        }
        if not wanted:
            return results
        sources = [
            replace(source, writable=source.writable or source.shown in wanted)
            for source in sources
        ]


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


def concern(contents: Iterable[bytes], options: Options, vendor: bool = False) -> bool:
    """Whether a project may have something to migrate; if not, not even the engine is imported."""
    return options.modernize or any(
        mentions_legacy(content) or may_concern(content, vendor) for content in contents
    )


def _declared(declaring: Declaring, repository: str) -> Sequence[Found]:
    """The files of a repository that declare dependencies."""
    return by_repository(declaring()).get(repository, [])


def _migrated(
    project: tuple[str, Mapping[Found, bytes]], migrate: Migrate, vendor: bool
) -> Results:
    """The results of the engine for a project, by file, with those for new files.

    Of the context, there are those for the files that change, or on which this tool fails.
    """
    repository, contents = project
    root = root_of(contents, repository)
    paths = {file: root.path(file.location) for file in contents}
    sources = [
        Source(paths[file], content, file.path, not file.is_context)
        for file, content in contents.items()
    ]
    migrated = migrated_with_copies(root, list(contents), sources, migrate, vendor)
    files = {path: file for file, path in paths.items()}
    # the results behind those of the sources are for new files
    for result in migrated[len(sources) :]:
        location = root.location(result.path)
        files[result.path] = Found(shown(location), location, os.path.dirname(location))
    return {
        files[result.path]: result._replace(path=files[result.path].path)
        for result in migrated
        if result.changed or result.tracebacks or not files[result.path].is_context
    }


def _unwritten(result: FileResult, reason: str) -> FileResult:
    """The result of a file that could not be written: none of its sites is rewritten."""
    left: list[Site] = []
    for site in result.sites:
        if site.status == "vendored":
            left.append(replace(site, status="unresolved"))
        elif site.status != "rewritten":
            left.append(site)
    return FileResult(
        result.path,
        result.before,
        result.before,
        tuple(left),
        reason,
        tracebacks=result.tracebacks,
    )
