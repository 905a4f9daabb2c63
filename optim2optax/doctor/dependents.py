"""Installed packages that a project uses, and that use `flax.optim` themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions

from packaging.utils import canonicalize_name

from codemods.model import Source
from codemods.removed.table import LEGACY
from codemods.sources.prefilter import mentions_legacy
from optim2optax.doctor.obstacles import Obstacle

NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)


def dependents(sources: Iterable[Source]) -> list[Obstacle]:
    """The installed packages, imported by some files, in which `flax.optim` is used."""
    from codemods.survey import survey

    imported: set[str] = set()
    for source in sources:
        imported |= {name.decode() for name in IMPORT.findall(source.content)}
    found: list[Obstacle] = []
    for package in _on_flax():
        own = _modules(package)
        if imported.isdisjoint(one.path.split("/")[0] for one in own):
            continue
        legacy = [one for one in own if mentions_legacy(one.content)]
        uses = [use for use in survey(legacy) if use.row == LEGACY]
        if uses:
            what = f"{package.name} {package.version}, which is installed"
            places = tuple(f"{use.path}:{use.line}" for use in uses)
            remedy = "It uses flax.optim itself: take a release that does not, or migrate it."
            found.append(Obstacle(what, "", places, remedy))
    return found


def _on_flax() -> Iterator[Distribution]:
    """The installed distributions that require Flax."""
    for package in distributions():
        names = (NAME.match(one) for one in package.requires or ())
        if any(name and canonicalize_name(name[1]) == "flax" for name in names):
            yield package


def _modules(package: Distribution) -> list[Source]:
    """The Python files of a distribution, with their paths from its root on."""
    found: list[Source] = []
    for file in package.files or ():
        if file.suffix == ".py":
            try:
                found.append(Source(str(file), file.read_binary()))
            except OSError:
                continue
    return found
