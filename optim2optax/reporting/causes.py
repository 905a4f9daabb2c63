"""What is left, by root cause: the sites that have a reason of their own, and those that wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from codemods.model import Location, Site, Status
from optim2optax.reporting.report import Report, Sites

LEFT = ("unresolved", "vendored")
IMPORT, SIBLING, NOTE = "FO911", "FO901", "note"
DEPENDENCIES = ("FO85", "FO95")
"""The prefixes of the codes of dependencies."""

ESCAPE, CONFIGURED = "FO932", "FO956"
TOLD = (ESCAPE, CONFIGURED)
"""The codes of hints that are told with their lines: an optimizer goes out of view, and a
configuration names what is no more."""


class Reason(NamedTuple):
    """What there is to say of a site that is left, or has a note."""

    code: str
    status: Status
    message: str
    remedy: str | None


@dataclass
class Entry:
    """A root cause, or a note: the sites that it strikes, and those that wait for them.

    `others` is the number of sites that keep the same optimizers for other reasons.
    """

    reason: Reason
    sites: Sites = field(default_factory=list)
    waiting: Sites = field(default_factory=list)
    others: int = 0


def waiting(report: Report) -> Mapping[Location, Sites]:
    """What waits for each site for the sake of which others stay."""
    causes = {
        Location(path, site.line)
        for path, site in report.sites
        if _stands_in_the_way(site)
    }
    found: dict[Location, Sites] = defaultdict(list)
    for path, site in report.sites:
        # there is no such cause if its file could not be written
        if site.status in LEFT and site.cause in causes:
            found[site.cause].append((path, site))
    return found


def entries(report: Report) -> Iterable[Entry]:
    """What is left, an entry for each reason, and the notes on what was rewritten."""
    waits = {**waiting(report)}
    found: dict[Reason, Entry] = {}
    obstacles = Counter(
        site.group for _, site in report.sites if _stands_in_the_way(site)
    )

    def enter(reason: Reason, path: str, site: Site) -> None:
        entry = found.setdefault(reason, Entry(reason))
        entry.sites.append((path, site))
        entry.waiting += waits.pop(Location(path, site.line), ())

    waiters = {id(site) for sites in waits.values() for _, site in sites}
    for path, site in report.sites:
        if site.status in LEFT and id(site) not in waiters:
            reason = Reason(site.code, site.status, site.message, site.remedy)
            enter(reason, path, site)
    for path, site in report.sites:
        # what waits for a site that is suppressed or not selected
        pending = waits.get(Location(path, site.line))
        if pending and site.status == "suppressed":
            # an import has no reason of its own to stay
            _, first = min(pending, key=lambda waiter: waiter[1].code == IMPORT)
            message = "This is suppressed or not selected."
            reason = Reason(first.code, "suppressed", message, first.remedy)
            enter(reason, path, site)
        if site.note:
            enter(Reason(NOTE, site.status, site.note, None), path, site)
    for entry in found.values():
        own = Counter(site.group for _, site in entry.sites if _stands_in_the_way(site))
        groups = (group for group in own if group is not None)
        entry.others = sum(obstacles[group] - own[group] for group in groups)
    return found.values()


def hinted(report: Report, code: str) -> Iterable[Entry]:
    """The hints of a code, an entry for each message."""
    found: dict[Reason, Entry] = {}
    for path, site in report.hints:
        if site.code == code:
            remedy = None if code == ESCAPE else site.remedy
            reason = Reason(code, site.status, site.message, remedy)
            found.setdefault(reason, Entry(reason)).sites.append((path, site))
    return found.values()


def _stands_in_the_way(site: Site) -> bool:
    return site.cause is None and site.status != "rewritten"


class Partly(NamedTuple):
    """Of so many sites that are left, `--partial` would rewrite some and mark some."""

    left: int
    rewritten: int
    marked: int


MAKING = ("FO102", "FO201")
"""The codes of what makes an optimizer."""


def partly(report: Report) -> Partly:
    """What `--partial` would do with what is left, imports apart, which go by their uses."""
    # they stand for what is left in files that are not written, where nothing can mark it
    fixed = {
        Location(path, site.line)
        for path, site in report.sites
        if (site.cause is None and (site.related or site.code == SIBLING))
        # what makes an optimizer that stays by a comment
        or (site.status == "suppressed" and site.code in MAKING)
    }
    left = [(path, site) for path, site in report.sites if _is_left(site)]
    moving = [
        (path, site)
        for path, site in left
        if (site.cause or Location(path, site.line)) not in fixed
    ]
    rewritten = [path for path, site in moving if site.cause is not None]
    # no other file gets a comment
    changed = {path for path, site in report.sites if site.status == "rewritten"}
    changed.update(rewritten)
    marked = sum(site.cause is None and path in changed for path, site in moving)
    return Partly(len(left), len(rewritten), marked)


def _is_left(site: Site) -> bool:
    """Whether a use is left that is no import."""
    is_import = site.before.startswith(("import ", "from "))
    is_use = not is_import and not site.code.startswith(DEPENDENCIES)
    return site.status == "unresolved" and is_use
