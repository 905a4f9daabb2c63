"""Names that are gone in the versions at hand, and files that no Python 3 reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from codemods.model import Options, Source
from codemods.removed.table import LEGACY, NEVER, Found, Removed, packages
from packaging.version import Version

MODERNIZE = "optim2optax rewrite --modernize"
REWRITE = "optim2optax rewrite"
RAISED = ("FO852", "FO853")
PINS = (*RAISED, "FO951", "FO952", "FO955")
"""The codes of what keeps the versions from being installed that are needed."""

NEWEST = Version("9999")
"""Stands for a package that is not installed: its newest version lacks all that was ever removed."""

TITLES = {"flax": "Flax", "jax": "JAX", "jaxlib": "jaxlib", "numpy": "NumPy", "optax": "optax"}


@dataclass(frozen=True)
class Obstacle:
    """One thing that keeps a project from running.

    Attributes:
      what: the name, or the problem.
      since: since when, as `Flax 0.6.0`; empty if that is no matter of versions.
      places: where, as `path:line`, in order.
      remedy: what to do, in a sentence or a command.
      command: the command that does it; empty if nothing but a person can.
    """

    what: str
    since: str
    places: tuple[str, ...]
    remedy: str
    command: str = ""


def installed() -> dict[str, Version]:
    """The versions of the packages that a project is to run on; those that are not installed count as the newest."""
    found = {}
    for name in sorted(packages()):
        try:
            found[name] = Version(version(name))
        except PackageNotFoundError:
            found[name] = NEWEST
    return found


def obstacles(sources: Iterable[Source], versions: Mapping[str, Version]) -> list[Obstacle]:
    """What keeps some files from running with these versions: the commonest first, what no command mends last."""
    from codemods.survey import survey  # imports all that analyses code

    grouped: dict[tuple[Removed | None, str], list[Found]] = defaultdict(list)
    for found in survey(sources):
        if found.row is None or _concerns(found.row, versions[found.row.package]):
            grouped[found.row, found.problem].append(found)
    return sorted(
        map(_obstacle, grouped, grouped.values()),
        key=lambda one: (not one.command, -len(one.places), one.what),
    )


def _concerns(row: Removed, installed: Version) -> bool:
    """Whether a name is not there in a version. What nobody is known to have removed may still come in later versions."""
    if row.how == NEVER:
        return installed is NEWEST or installed <= Version(row.gone)
    return Version(row.gone) <= installed


def pinned(declaring: Sequence[Source]) -> list[Obstacle]:
    """What the dependencies that a project declares exclude, and today's code needs."""
    from optim2optax.dependencies.editing import dependencies

    found = []
    for result in dependencies(declaring, Options()):
        for site in result.hints:
            if site.code in PINS:
                place = f"{result.path}:{site.line}"
                found.append(
                    Obstacle(
                        site.before,
                        "",
                        (place,),
                        site.message,
                        MODERNIZE if site.code in RAISED else "",
                    )
                )
    return found


def _obstacle(key: tuple[Removed | None, str], found: list[Found]) -> Obstacle:
    row, problem = key
    places = tuple(dict.fromkeys(f"{one.path}:{one.line}" for one in found))
    if row is None:
        return Obstacle(problem, "", places, "Correct the file, or leave it out.")
    if row.how == NEVER:
        return Obstacle(row.name, "", places, f"{TITLES[row.package]} does not have it. {row.note}")
    since = f"{TITLES[row.package]} {row.gone}"
    if row == LEGACY:
        return Obstacle(row.name, since, places, "It moves to optax.", REWRITE)
    if row.how == "none":
        return Obstacle(row.name, since, places, row.note)
    remedy = f"It is `{row.to}` now." if row.how == "same" else "It is written in another way now."
    return Obstacle(row.name, since, places, remedy, MODERNIZE)
