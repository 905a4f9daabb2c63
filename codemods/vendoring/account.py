"""What is left where a project has a copy of a removed package.

Sites that use the copy are vendored, and need nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from codemods.messages import text_of
from codemods.model import FileResult, Refusal, Site
from codemods.rules import reasons
from codemods.sources.modules import Span, Unit
from codemods.sources.places import Places
from codemods.vendoring.packages import RemovedPackage


@dataclass(frozen=True)
class Account:
    """Finds the status of each site.

    Attributes:
      package: what there is a copy of.
      places: which files are in one program.
      pointed: the files that are pointed at a copy.
      failed: the files that need a copy but cannot be pointed at one.
      left: what still refers to the package in the files that are pointed.
    """

    package: RemovedPackage
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
        lines: set[int] = set()
        for unit, (first, _, last, _), _ in left:
            lines.update(map(unit.line, range(first, last + 1)))
        sites = list(result.sites)
        if self._is_served(result.path):
            sites = [self._vendored(site, lines) for site in sites]
        if without_place:
            sites = [self._without_place(site) for site in sites]
        # a line that is reported already gets no second message
        reported = ("unresolved", "suppressed")
        known = {site.line for site in sites if site.status in reported}
        unpointed = reasons.unpointed(
            f"This cannot be pointed at the copy of `{self.package.name}`.",
            "Import that by its name, and say what is needed of it.",
        )
        for unit, span, text in left:
            if unit.line(span[0]) not in known:
                sites.append(left_site(unit, span, text, unpointed))
        in_order = sorted(sites, key=lambda site: (site.line, site.column))
        return result._replace(sites=tuple(in_order))

    def _is_served(self, path: str) -> bool:
        """Whether a file is in a program that has a copy, and in it all files can import that."""
        program = self.places.together(path)
        has_copy = not program.isdisjoint(self.pointed)
        return has_copy and program.isdisjoint(self.failed)

    def _vendored(self, site: Site, left: Collection[int]) -> Site:
        is_vendored = self.package.concerns(site) and site.line not in left
        return replace(site, status="vendored") if is_vendored else site

    def _without_place(self, site: Site) -> Site:
        """A site of a file that cannot be pointed at a copy: its imports get the reason."""
        if not self.package.concerns(site):
            return site
        # optim.Adam(rate), in the same file
        if not site.before.startswith(("from ", "import ")):
            return site
        reason = reasons.no_place(
            f"`--vendor` finds no place from which all files of this program that need "
            f"`{self.package.name}` can import one copy by one name.",
            "Put these files into one package.",
        )
        why = text_of(reason.reason)
        remedy = text_of(reason.remedy)
        return replace(site, code=reason.code, message=why, remedy=remedy, cause=None)


def left_site(unit: Unit, span: Span, text: str, refusal: Refusal) -> Site:
    """A site of what still refers to a removed package, for a reason of its own."""
    first, start, last, end = span
    cell = unit.cell(first)
    why = text_of(refusal.reason)
    return Site(
        code=refusal.code,
        line=unit.line(first),
        column=start + 1,
        end_line=unit.line(last),
        end_column=end + 1,
        status="unresolved",
        evidence="proven",
        message=f"{cell}: {why}" if cell else why,
        before=text,
        remedy=text_of(refusal.remedy),
    )
