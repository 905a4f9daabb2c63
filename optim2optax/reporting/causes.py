"""What is left, by root cause: the sites that have a reason of their own, and those that wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codemods.model import Location, Site
from optim2optax.reporting.report import Report

LEFT = ("unresolved", "vendored")


@dataclass(frozen=True)
class Waiting:
    """The sites that stay for the sake of another, by file.

    `others` is the number of further sites of its group that stand in the way, too.
    """

    sites: Mapping[str, Sequence[Site]]
    others: int

    @property
    def count(self) -> int:
        return sum(map(len, self.sites.values()))


def waiting(report: Report) -> dict[Location, Waiting]:
    """What waits for each site for the sake of which others stay."""
    sites: dict[Location, dict[str, list[Site]]] = defaultdict(
        lambda: defaultdict(list)
    )
    causes: dict[Location, Site] = {}
    obstacles: dict[Location | None, int] = defaultdict(int)
    for result, site in report.sites:
        if site.status == "rewritten":
            continue
        if site.cause is None:
            # of several at one line, the first stands for all
            causes.setdefault(Location(result.path, site.line), site)
            obstacles[site.group] += 1
        elif site.status in LEFT:
            sites[site.cause][result.path].append(site)
    found: dict[Location, Waiting] = {}
    for place, waiters in sites.items():
        cause = causes.get(place)
        # none, if its file could not be written
        if cause is not None:
            others = obstacles[cause.group] - 1 if cause.group is not None else 0
            found[place] = Waiting(waiters, others)
    return found
