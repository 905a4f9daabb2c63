"""The result of a run: the one record that every format presents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from codemods.model import FileResult, Site, Status

Sites = list[tuple[str, Site]]
"""Sites with the paths of their files."""


@dataclass(frozen=True)
class Report:
    """The results of all scanned files.

    `preview` says that nothing was written: `rewritten` means that a site would be rewritten. For
    people, `verbose` has every line of what is left. Of several `repositories`, each has its own
    results.
    """

    results: Sequence[FileResult]
    preview: bool = False
    diff: bool = False
    verbose: bool = False
    repositories: Mapping[str, Sequence[FileResult]] = field(default_factory=dict)

    @cached_property
    def sites(self) -> Sites:
        return [(one.path, site) for one in self.results for site in one.sites]

    @cached_property
    def hints(self) -> Sites:
        return [(one.path, site) for one in self.results for site in one.hints]

    @staticmethod
    def of(result: FileResult, status: Status) -> int:
        """The number of sites of one file that have a status."""
        return sum(site.status == status for site in result.sites)

    @cached_property
    def changed(self) -> Sequence[FileResult]:
        return [result for result in self.results if result.changed]

    @cached_property
    def errors(self) -> Sequence[FileResult]:
        return [result for result in self.results if result.error is not None]

    @cached_property
    def summary(self) -> dict[str, int]:
        """The totals; `sites` is the sum of the four numbers behind it."""
        sites = Counter(site.status for _, site in self.sites)
        return {
            # a new file was not there to be scanned
            "files_scanned": sum(result.kind != "new" for result in self.results),
            "files_changed": len(self.changed),
            "sites": sites.total(),
            "rewritten": sites["rewritten"],
            "suppressed": sites["suppressed"],
            "vendored": sites["vendored"],
            "unresolved": sites["unresolved"],
            "errors": len(self.errors),
        }

    @property
    def exit_code(self) -> int:
        """0: nothing is left to do. 1: something is left, or not read. 2: an internal error."""
        if any(result.tracebacks for result in self.results):
            return 2
        if self.summary["unresolved"] or self.summary["errors"]:
            return 1
        return 1 if self.preview and self.changed else 0
