"""Names that were removed in the installed versions, and files that no Python 3 reads."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from platform import python_version
from typing import TYPE_CHECKING

from packaging.version import Version

from codemods.model import Options, Source
from codemods.removed.table import (
    LEGACY,
    MODELS,
    NEVER,
    Removed,
    RemovedUse,
    changed,
    packages,
)
from optim2optax.wording import titled

if TYPE_CHECKING:
    from optim2optax.dependencies.declared import DeclaredRequirement

MODERNIZE = "optim2optax rewrite --modernize"
REWRITE = "optim2optax rewrite"
VENDOR = "optim2optax rewrite --vendor"
RAISED = ("FO852", "FO853")
PINS = (*RAISED, "FO951", "FO952", "FO955")
"""The codes of requirements that exclude the needed versions."""

NEWEST = Version("9999")
"""The version of a package that is not installed: it lacks all names that were ever removed."""

RUNS_ON = ("flax", "jax", "jaxlib", "numpy")
"""The packages whose installed versions the project has to admit."""

FORMS = {
    "argument": "{}() without features",
    "array": "a list for {}",
    "carry": "{} without features",
    "list": "a list that is added to a field of flax.linen.Module",
    "position": "an argument of {} by position",
    "unsigned": "a negative number for {}",
}
"""What is taken otherwise, by how; where nothing is said, the name says it."""


@dataclass(frozen=True)
class Obstacle:
    """One thing that keeps a project from running.

    Attributes:
      what: the name, or the problem.
      since: the first version without the name, as `Flax 0.6.0`; empty if it does not depend on
        versions.
      places: the places, as `path:line`, in order.
      remedy: what to do, in a sentence or a command.
      command: the command that does it; empty if it has to be done by hand.
      is_there: whether the name is still there, and taken otherwise.
    """

    what: str
    since: str
    places: tuple[str, ...]
    remedy: str
    command: str = ""
    is_there: bool = False


def installed() -> dict[str, Version]:
    """The versions of the packages that a project runs on.

    Packages that are not installed count as the newest.
    """
    found = {}
    for name in sorted(packages() | {row.package for row in changed().values()}):
        if name in sys.stdlib_module_names:
            found[name] = Version(python_version())
            continue
        try:
            found[name] = Version(version(name))
        except PackageNotFoundError:
            found[name] = NEWEST
    return found


def obstacles(
    sources: Iterable[Source], versions: Mapping[str, Version]
) -> list[Obstacle]:
    """The obstacles in some files with these versions.

    The commonest come first, and those that no command resolves last.
    """
    from codemods.survey import survey  # imports all that analyses code

    grouped: dict[tuple[Removed | None, str], list[RemovedUse]] = defaultdict(list)
    for found in survey(sources):
        if found.row is None or _is_absent(found.row, versions[found.row.package]):
            grouped[found.row, found.problem].append(found)
    return sorted(map(_obstacle, grouped, grouped.values()), key=_order)


def _order(obstacle: Obstacle) -> tuple[bool, int, str]:
    return not obstacle.command, -len(obstacle.places), obstacle.what


def _is_absent(row: Removed, installed: Version) -> bool:
    """Whether a version lacks a name.

    A name that was never removed may be new in a later version than those that are known.
    """
    if row.how == NEVER:
        return installed is NEWEST or installed <= Version(row.removed_in)
    return Version(row.removed_in) <= installed


def pinned(
    declaring: Sequence[Source],
    versions: Mapping[str, Version],
    *,
    is_old: bool,
    needs_legacy: bool,
) -> list[Obstacle]:
    """The declared dependencies of a project that exclude the versions that it should run on.

    With `is_old` code, those too that exclude what its new form needs; if it `needs_legacy`, also
    those that admit a Flax without `flax.optim`.
    """
    from optim2optax.dependencies.updating import dependencies

    found: dict[tuple[str, str], Obstacle] = {}
    for one, text, place in _requirements(declaring):
        if needs_legacy and one.name == "flax" and _admits(one, LEGACY.removed_in):
            found[text, place] = _open(text, place)
        here = versions.get(one.name, NEWEST) if one.name in RUNS_ON else NEWEST
        if here is not NEWEST and not _admits(one, str(here)):
            remedy = f"It excludes {titled(one.name)} {here}. Raise it to run on that."
            found[text, place] = Obstacle(text, "", (place,), remedy)
    for result in dependencies(declaring, Options()) if is_old else ():
        for site in result.hints:
            if site.code in PINS:
                # jax==0.2.1
                place = f"{result.path}:{site.line}"
                command = MODERNIZE if site.code in RAISED else ""
                told = Obstacle(site.before, "", (place,), site.message, command)
                found[site.before, place] = told
    return [*found.values()]


def _requirements(
    declaring: Sequence[Source],
) -> Iterator[tuple[DeclaredRequirement, str, str]]:
    """The requirements of a project, each with its text and its place."""
    from optim2optax.dependencies.declaring_file import read_source

    for file in map(read_source, declaring):
        declares = file.declares
        sections = [section.declared for section in declares.sections]
        told = () if declares.command else declares.told
        for one in chain(told, *sections):
            line, _ = file.position(one.span[0])
            yield one, file.text[slice(*one.span)], f"{file.source.path}:{line}"


def _admits(one: DeclaredRequirement, version: str) -> bool:
    """Whether a requirement admits a version, or a later one; what is not understood does."""
    from optim2optax.dependencies.versions import NotUnderstoodError, admits

    try:
        return admits(one.spec, version, one.syntax)
    except NotUnderstoodError:
        return True


def _open(what: str, place: str) -> Obstacle:
    remedy = (
        f"It also installs a Flax without `flax.optim`: {LEGACY.removed_in} or later. "
        f"Move to optax; until then, require flax<{LEGACY.removed_in}."
    )
    return Obstacle(what, "", (place,), remedy, REWRITE)


def _obstacle(key: tuple[Removed | None, str], found: list[RemovedUse]) -> Obstacle:
    row, problem = key
    places = tuple(dict.fromkeys(f"{one.path}:{one.line}" for one in found))
    if row is None:  # the syntax of Python 2
        return Obstacle(problem, "", places, "Correct the file, or leave it out.")
    title = titled(row.package)
    if row.how == NEVER:
        return Obstacle(row.name, "", places, f"{title} does not have it. {row.note}")
    since = f"{title} {row.removed_in}"
    if row == LEGACY:
        return Obstacle(row.name, since, places, "It moves to optax.", REWRITE)
    if row.name in MODELS:
        return Obstacle(row.name, since, places, row.note, VENDOR)
    if row.name in changed():
        what = FORMS.get(row.how, row.name).format(row.function)
        remedy = row.note or "It is written in another way now."
        if row.how == "keyword":
            remedy = f"It is `{row.to}` now."
        command = "" if row.note else MODERNIZE
        return Obstacle(what, since, places, remedy, command, is_there=True)
    if row.how == "none":  # the note is the remedy, which is done by hand
        return Obstacle(row.name, since, places, row.note)
    remedy = "It is written in another way now."
    if row.how == "same":
        remedy = f"It is `{row.to.removeprefix('builtins.')}` now."
    return Obstacle(row.name, since, places, remedy, MODERNIZE)
