"""The dependencies of a project whose code has moved to optax, beside that code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from codemods.model import FileResult, Options, Source

from optim2optax.dependencies import declares
from optim2optax.dependencies.needs import LOWEST, Needs
from optim2optax.dependencies.texts import mentions
from optim2optax.project import Found, UnreadableError, concerning, read_file

Declaring = Callable[[], Sequence[Found]]
"""Finds the files that declare dependencies, when they are needed."""

IMPORT = re.compile(rb'(?:^|"|\\n)[ \t]*(?:import|from)[ \t]+optax\b', re.MULTILINE)
CODES = ("FO851", "FO852", "FO853", "FO854", "FO950", "FO951", "FO952", "FO953", "FO954", "FO955")
TOO_OLD = ("FO852", "FO853")


def with_dependencies(
    contents: Mapping[Found, bytes],
    results: Mapping[Found, FileResult],
    options: Options,
    find: Declaring,
) -> dict[Found, FileResult]:
    """What is to be said of dependencies, for the files of which there is something to say.

    They are looked at if code is rewritten in this run, or uses optax, maybe since an earlier one. Then, unless they are to be
    changed, only what is too old is told.

    Args:
      contents: the code.
      results: what has become of it.
      options: with `modernize`, the dependencies are changed.
      find: gives the files that declare them.
    """
    moved = [file for file, result in results.items() if result.changed]
    users = [
        file for file, content in contents.items() if b"optax" in content and IMPORT.search(content)
    ]
    if not (moved or users) or not any(map(options.selects, CODES)):
        return {}
    notebooks = [
        file for file, content in contents.items() if declares(file.path) and b"pip" in content
    ]
    code = {file.location: file for file in contents}
    declaring = concerning([*find(), *notebooks], contents, (*moved, *users))
    found: dict[Found, FileResult] = {}
    sources: dict[Found, Source] = {}
    for file in dict.fromkeys(code.get(file.location, file) for file in declaring):
        try:
            content = contents[file] if file in contents else read_file(file)
        except UnreadableError as error:
            if options.modernize:
                found[file] = FileResult(file.path, b"", b"", error=str(error))
            continue
        if mentions(content):
            sources[file] = Source(file.path, content)
    if not sources:
        return found
    from optim2optax.dependencies.editing import dependencies

    needs = _needs(users, results)
    for (file, source), result in zip(
        sources.items(), dependencies([*sources.values()], options, needs), strict=True
    ):
        is_too_old = any(site.code in TOO_OLD for site in result.hints)
        if result.sites or (result.hints and (moved or is_too_old)):
            found[file] = (
                _beside(results[file], result, source, options, needs)
                if file in results
                else result
            )
    return found


def _needs(users: Sequence[Found], results: Mapping[Found, FileResult]) -> Needs:
    """The lowest versions of what the code needs: optax only where it is in use, and what has the new names in it."""
    from optim2optax.dependencies.releases import raised

    is_user = bool(users) or any(IMPORT.search(result.after) for result in results.values())
    needs = (
        Needs()
        if is_user
        else Needs({name: lowest for name, lowest in LOWEST.items() if name != "optax"})
    )
    return raised(needs, (need for result in results.values() for need in result.needs))


def _beside(
    code: FileResult, declared: FileResult, source: Source, options: Options, needs: Needs
) -> FileResult:
    """What becomes of a file that is code, too: a notebook, or a setup.py."""
    after = declared.after
    if code.changed and options.modernize:
        from optim2optax.dependencies.editing import dependencies

        [again] = dependencies([Source(source.path, code.after)], options, needs)
        after = again.after
    elif code.changed:
        after = code.after
    sites = sorted((*code.sites, *declared.sites), key=lambda site: (site.line, site.column))
    return replace(code, after=after, sites=tuple(sites), hints=(*code.hints, *declared.hints))
