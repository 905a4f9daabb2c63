"""The dependencies of a project whose code has moved to optax, updated with that code."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from codemods.model import FileResult, Options, Source
from optim2optax.dependencies import declares, mentions
from optim2optax.project import Found, UnreadableError, concerning, read_file, shown

if TYPE_CHECKING:
    from optim2optax.dependencies.needs import Needs

Declaring = Callable[[], Sequence[Found]]
"""Finds the files that declare dependencies, when they are needed."""

# also in the text of a notebook: "import optax\n",
IMPORTS = {
    name: re.compile(
        rb'(?:^|"|\\n)[ \t]*(?:import|from)[ \t]+%s\b' % name.encode(), re.MULTILINE
    )
    for name in ("optax", "chex")
}
INCLUDED = re.compile(rb"^[ \t]*(?:-r|--requirement)[ \t=]*([^\s#]+)", re.MULTILINE)
CODES = (
    *(f"FO85{digit}" for digit in "1234"),
    *(f"FO95{digit}" for digit in "0123456"),
)
STILL_WRONG = ("FO852", "FO853", "FO955", "FO956")


def with_dependencies(
    contents: Mapping[Found, bytes],
    results: Mapping[Found, FileResult],
    options: Options,
    find: Declaring,
) -> dict[Found, FileResult]:
    """The results for the files that declare dependencies, if they have findings.

    The files are read if code is rewritten in this run, or uses optax, perhaps since an earlier
    run. If no code is rewritten, and they are not to be changed, only versions that are too old
    are reported, and configurations that name what was removed.

    Args:
      contents: the code.
      results: the results for the code.
      options: with `modernize`, the dependencies are changed.
      find: gives the files that declare them.
    """
    moved = [file for file, result in results.items() if result.changed]
    users = [file for file, content in contents.items() if _imports("optax", content)]
    if not (moved or users) or not any(map(options.selects, CODES)):
        return {}
    found: dict[Found, FileResult] = {}
    files = _declaring(contents, (*moved, *users), find)
    sources = _sources(files, contents, options, found)
    if not sources:
        return found
    from optim2optax.dependencies.updating import dependencies

    needs = _needs(contents, results)
    declared = dependencies([*sources.values()], options, needs)
    for (file, source), result in zip(sources.items(), declared, strict=True):
        is_wrong = any(site.code in STILL_WRONG for site in result.hints)
        if result.sites or (result.hints and (moved or is_wrong)):
            found[file] = result
            if file in results:
                found[file] = _beside(results[file], result, source, options, needs)
    return found


def _imports(package: str, content: bytes) -> bool:
    return package.encode() in content and bool(IMPORTS[package].search(content))


def _declaring(
    contents: Mapping[Found, bytes], moved: Sequence[Found], find: Declaring
) -> list[Found]:
    """The files that declare the dependencies of moved code."""
    # !pip install flax
    notebooks = [
        file
        for file, content in contents.items()
        if declares(file.path) and b"pip" in content
    ]
    # a setup.py may be found as code and as declaring
    code = {file.location: file for file in contents}
    declaring = with_included(concerning([*find(), *notebooks], contents, moved))
    return [code.get(file.location, file) for file in declaring]


def with_included(files: Sequence[Found]) -> list[Found]:
    """Files that declare dependencies, and those of any name that requirements include."""
    found = {file.location: file for file in files}
    waiting = [file for file in files if file.path.endswith((".txt", ".in"))]
    # the list grows while it is read
    for file in waiting:
        with suppress(UnreadableError):
            for path in INCLUDED.findall(read_file(file.location)):
                folder = os.path.dirname(file.location)
                place = os.path.realpath(os.path.join(folder, os.fsdecode(path)))
                is_within = place.startswith(f"{file.named}{os.sep}")
                if is_within and place not in found and os.path.isfile(place):
                    found[place] = Found(shown(place), place, file.named)
                    waiting.append(found[place])
    return [*found.values()]


def _sources(
    files: Sequence[Found],
    contents: Mapping[Found, bytes],
    options: Options,
    results: dict[Found, FileResult],
) -> dict[Found, Source]:
    """The files that mention Flax or JAX; `results` gets those that cannot be read."""
    sources: dict[Found, Source] = {}
    for file in dict.fromkeys(files):
        try:
            content = contents[file] if file in contents else read_file(file.location)
        except UnreadableError as error:
            # what cannot be read matters only where it would be changed
            if options.modernize:
                results[file] = FileResult(file.path, b"", b"", error=str(error))
            continue
        if mentions(content):
            sources[file] = Source(file.path, content)
    return sources


def _needs(
    contents: Mapping[Found, bytes], results: Mapping[Found, FileResult]
) -> Needs:
    """The lowest versions that the code needs, of optax only if the code uses it.

    optax brought chex once.
    """
    from optim2optax.dependencies.needs import LOWEST, Needs, raised

    # code that was rewritten may import optax only now
    codes = [*contents.values(), *(result.after for result in results.values())]
    imports = [name for name in IMPORTS if any(_imports(name, code) for code in codes)]
    lowest = dict(LOWEST)
    if "optax" not in imports:
        del lowest["optax"]
    needs = Needs(lowest, imports=tuple(imports))
    # the replacement of a removed name may need a later JAX than the rest
    return raised(needs, (need for result in results.values() for need in result.needs))


def _beside(
    code: FileResult,
    declared: FileResult,
    source: Source,
    options: Options,
    needs: Needs,
) -> FileResult:
    """The result for a file that is code, too: a notebook, or a setup.py."""
    after = declared.after
    if code.changed and options.modernize:
        # both change the file: dependencies are edited in the migrated text
        from optim2optax.dependencies.updating import dependencies

        [again] = dependencies([Source(source.path, code.after)], options, needs)
        after = again.after
    elif code.changed:
        after = code.after
    sites = sorted(
        (*code.sites, *declared.sites), key=lambda site: (site.line, site.column)
    )
    return code._replace(
        after=after, sites=tuple(sites), hints=(*code.hints, *declared.hints)
    )
