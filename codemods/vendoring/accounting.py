"""What is left where a project has a copy of `flax.optim`: what speaks to that is vendored, and needs nothing more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from codemods.model import FileResult, Refusal, Site
from codemods.rules import reasons
from codemods.sources.modules import Span, Unit
from codemods.vendoring.places import Places

OTHERS = "FO8"
"""Begins the codes of what is no matter of optimizers."""


def concerns(site: Site) -> bool:
    """Whether a site is left that needs `flax.optim`."""
    return site.status == "unresolved" and not site.code.startswith(OTHERS)


@dataclass(frozen=True)
class Account:
    """Tells of each site what has become of it.

    Attributes:
      places: which files are in one program.
      pointed: the files that are pointed at a copy.
      failed: those that need one and cannot be.
      left: what still speaks of `flax.optim` in those that are.
    """

    places: Places
    pointed: Collection[str]
    failed: Collection[str]
    left: Mapping[Unit, Sequence[tuple[Span, str]]]

    def of(self, result: FileResult, without_place: bool) -> FileResult:
        """A result with the status of its sites."""
        left = [
            (unit, span, text)
            for unit, found in self.left.items()
            if unit.path == result.path
            for span, text in found
        ]
        lines = {unit.line(line) for unit, span, _ in left for line in range(span[0], span[2] + 1)}
        sites = [
            self._vendored(site, lines) if self._is_served(result.path) else site
            for site in result.sites
        ]
        if without_place:
            sites = [_without_place(site) for site in sites]
        known = {site.line for site in sites if site.status in ("unresolved", "suppressed")}
        sites += [_unpointed(*found) for found in left if found[0].line(found[1][0]) not in known]
        return replace(
            result, sites=tuple(sorted(sites, key=lambda site: (site.line, site.column)))
        )

    def _is_served(self, path: str) -> bool:
        """Whether a file is in a program with one that is pointed, and with none that cannot be."""
        program = self.places.together(path)
        return not program.isdisjoint(self.pointed) and program.isdisjoint(self.failed)

    @staticmethod
    def _vendored(site: Site, left: Collection[int]) -> Site:
        return (
            replace(site, status="vendored") if concerns(site) and site.line not in left else site
        )


def _without_place(site: Site) -> Site:
    """A site of a file that can be pointed at no copy: its imports say why."""
    if not concerns(site) or not site.before.startswith(("from ", "import ")):
        return site
    reason = reasons.no_place(
        "`--vendor` finds no place from which all files that need `flax.optim` can import one copy by one name.",
        "Give the folders of each program by themselves, or a place with `--vendor-as`.",
    )
    return replace(site, code=reason.code, message=reason.reason, remedy=reason.remedy)


def _unpointed(unit: Unit, span: Span, text: str) -> Site:
    reason: Refusal = reasons.unpointed(
        "This cannot be pointed at the copy of `flax.optim`.",
        "Import that by its name, and say what is needed of it.",
    )
    cell = unit.cell(span[0])
    return Site(
        code=reason.code,
        line=unit.line(span[0]),
        column=span[1] + 1,
        end_line=unit.line(span[2]),
        end_column=span[3] + 1,
        status="unresolved",
        evidence="proven",
        message=f"{cell}: {reason.reason}" if cell else reason.reason,
        before=text,
        remedy=reason.remedy,
    )
