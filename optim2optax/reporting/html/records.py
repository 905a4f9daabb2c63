"""What the templates of a review page show: a report, with links in the place of locations."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codemods.model import EmittedOptimizer, FileResult, Location, Site
from codemods.optimizers import optimizers
from codemods.rules import catalogue
from optim2optax.plots import plot
from optim2optax.reporting import json
from optim2optax.reporting.causes import (
    DEPENDENCIES,
    ESCAPE,
    LEFT,
    Sites,
    escapes,
    waiting,
)
from optim2optax.reporting.html.code import highlighted
from optim2optax.reporting.html.excerpts import excerpts
from optim2optax.reporting.html.flows import Step, flow
from optim2optax.reporting.html.page_links import Link, PageLinks
from optim2optax.reporting.report import Report

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case

STATUSES = ("rewritten", "suppressed", "vendored", "unresolved")
EVIDENCE = ("proven", "declared", "deduced", "likely")
IMPORT, REMOVED, UNKNOWN, ADDED = "FO911", "FO899", "FO898", "FO851"
SIDE = re.compile(r"\b(Legacy|optax): ")
UNNAMED = "optimizer of unknown origin"


Record = dict[str, Any]
"""A part of the page, by the names that its template has for what is in it."""


def page(report: Report, proofs: Mapping[EmittedOptimizer, Case]) -> Record:
    """What a page shows, given the cases of parity by the optimizers that were proven."""
    return _Records(report, proofs).page()


class _Records:
    def __init__(self, report: Report, proofs: Mapping[EmittedOptimizer, Case]) -> None:
        self.report = report
        self.proofs = proofs
        self.places = PageLinks(report.results)
        self.waiting = waiting(report)
        self.members: dict[Location, list[Step]] = defaultdict(list)
        for result, site in report.sites:
            if site.group is not None:
                self.members[site.group].append(
                    Step(Location(result.path, site.line), site)
                )
        self.identifiers = {
            group: f"o{index}" for index, group in enumerate(sorted(self.members))
        }
        self.results = {result.path: result for result in report.results}

    def page(self) -> Record:
        report = self.report
        files = [
            self._file(result) for result in report.results if self._is_shown(result)
        ]
        sites = [site for _, site in report.sites]
        hints = [site for result in report.results for site in result.hints]
        codes = sorted({site.code for site in (*sites, *hints)} & catalogue().keys())
        of_sites = {site.code for site in sites}
        dangling, dependencies = self._dangling(), self._dependencies()
        suppressions = [
            self.places.line(Location(result.path, line))
            for result in report.results
            for line in result.unused_suppressions
        ]
        return {
            "title": self.places.root.rstrip("/").rpartition("/")[2] or "this project",
            "preview": report.preview,
            "summary": report.summary,
            "totals": _totals(Counter(site.status for site in sites), len(sites)),
            "added": sum(file["added"] for file in files if file["changed"]),
            "removed": sum(file["removed"] for file in files if file["changed"]),
            "proof": self._proof(),
            "has_checkpoints": any(result.optimizers for result in report.results),
            "escapes": self._escapes(),
            "dangling": dangling,
            "dependencies": dependencies,
            "is_around": bool(dangling or dependencies or suppressions),
            "errors": [
                (self.places.file(result.path), self.places.text(result.error or ""))
                for result in report.errors
            ],
            "suppressions": suppressions,
            "causes": self._causes(),
            "optimizers": self._optimizers(),
            "files": files,
            "rules": [catalogue()[code] for code in codes],
            "evidence": [
                word
                for word in EVIDENCE
                if any(site.evidence == word for site in sites)
            ],
            "codes": [code for code in codes if code in of_sites],
        }

    def _is_shown(self, result: FileResult) -> bool:
        return bool(result.changed or result.error or self.places.wanted(result.path))

    def _proof(self) -> str:
        """In a sentence, whether parity has run."""
        if not self.proofs:
            return "Parity has not run on it."
        passing = sum(case.passes for case in self.proofs.values())
        return f"Parity: {passing} of {len(self.proofs)} optimizers train the same."

    def _escapes(self) -> list[tuple[str, list[tuple[Link, Sequence[Link]]]]]:
        """Where optimizers go out of view, by what they go to."""
        found: list[tuple[str, list[tuple[Link, Sequence[Link]]]]] = []
        for entry in escapes(self.report):
            places = [Location(path, site.line) for path, site in entry.sites]
            found.append((entry.reason.message, self._by_file(places)))
        return found

    def _dangling(self) -> list[Record]:
        """What is gone and still used, the commonest first."""
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for result in self.report.results:
            left = [site for site in result.sites if _is_removed(site)]
            hints = [
                site
                for site in result.hints
                if not site.code.startswith((ESCAPE, *DEPENDENCIES))
            ]
            for site in (*left, *hints):
                found[_name(site), _what(site)].append(result.path)
        by_count = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        return [
            {
                "name": name,
                "what": what,
                "uses": len(paths),
                "files": [*map(self.places.file, dict.fromkeys(paths))],
            }
            for (name, what), paths in by_count
        ]

    def _dependencies(self) -> list[Record]:
        return [
            self._dependency(result, site)
            for result in self.report.results
            for site in (*result.sites, *result.hints)
            if site.code.startswith(DEPENDENCIES)
        ]

    def _dependency(self, result: FileResult, site: Site) -> Record:
        what = site.remedy or ""
        # a site is changed in this run, a hint would be
        if not what and site not in result.sites:
            what = "`--modernize` changes it"
        message = self.places.text(site.message)
        return {
            "file": self.places.file(result.path),
            "code": site.code,
            # a package that is added has none before
            "before": "" if site.code == ADDED else " ".join(site.before.split()),
            "after": site.after or "",
            "what": f"{message} {what}".strip(),
        }

    def _causes(self) -> list[Record]:
        """What is left by root cause: first where one place frees most sites."""
        by_key: dict[object, list[tuple[FileResult, Site]]] = defaultdict(list)
        keys: dict[Location, object] = {}
        # what is of no optimizer, and on a line with what is of one, goes with that
        in_order = sorted(self.report.sites, key=lambda found: found[1].group is None)
        for result, site in in_order:
            place = Location(result.path, site.line)
            # a site that is suppressed is left by choice, and may be what others wait for
            is_chosen = site.status == "suppressed" and place in self.waiting
            is_left = site.status in LEFT or is_chosen
            # what waits is told with its cause, and dependencies in a table of their own
            is_told_here = site.cause is None and not site.code.startswith(DEPENDENCIES)
            if is_left and is_told_here:
                # `flax.nn` was removed: one cause, wherever it is used
                alone = (site.code, site.message.rpartition(": ")[2], site.remedy)
                key = keys.get(place, site.group or alone)
                if place in self.waiting:
                    keys[place] = key
                by_key[key].append((result, site))
        causes = [self._cause(key, found) for key, found in by_key.items()]

        def order(cause: Record) -> tuple[float, int]:
            return -cause["frees"] / cause["places"], -cause["frees"]

        return sorted(causes, key=order)

    def _cause(self, group: object, found: Sequence[tuple[FileResult, Site]]) -> Record:
        waits: dict[Location, Sites] = {}
        for result, site in found:
            place = Location(result.path, site.line)
            if place in self.waiting:
                waits[place] = self.waiting[place]
        waiters = [
            Location(path, site.line)
            for sites in waits.values()
            for path, site in sites
        ]
        # a place for which others wait, if there is one
        result, site = found[0]
        first = next(iter(waits), Location(result.path, site.line))
        optimizer = group if isinstance(group, Location) else None
        return {
            "obstacles": self._obstacles(found),
            "places": len(found),
            "first": self.places.line(first),
            "waiting": len(waiters),
            # the number of sites that migrate when all obstacles are out of the way
            "frees": len(waiters) + len(found),
            "waiting_files": self._by_file(waiters),
            "optimizer": self.identifiers[optimizer] if optimizer is not None else "",
            "name": self._name(optimizer) if optimizer is not None else "",
        }

    def _obstacles(self, found: Sequence[tuple[FileResult, Site]]) -> list[Record]:
        by_reason: dict[tuple[str, str, str], list[tuple[FileResult, Site]]] = (
            defaultdict(list)
        )
        for result, site in found:
            reason = site.message
            if site.status == "suppressed":
                reason = "This is suppressed or not selected."
            by_reason[site.code, reason, site.remedy or ""].append((result, site))
        return [
            {
                "code": code,
                "message": self.places.text(message),
                "remedy": self.places.text(remedy),
                "files": self._by_file(
                    Location(result.path, site.line) for result, site in sites
                ),
                "count": len(sites),
                "way": [*map(self.places.line, sites[0][1].way)],
            }
            for (code, message, remedy), sites in by_reason.items()
        ]

    def _by_file(self, found: Iterable[Location]) -> list[tuple[Link, Sequence[Link]]]:
        by_path: dict[str, dict[Link, None]] = defaultdict(dict)
        for place in sorted(found):
            # each line once, though it may have several sites
            by_path[place.path][self.places.number(place)] = None
        return [(self.places.file(path), [*lines]) for path, lines in by_path.items()]

    def _optimizers(self) -> list[Record]:
        sources = {
            path: result.before.decode("utf-8", "replace").split("\n")
            for path, result in self.results.items()
            if self.places.wanted(path)
        }
        found = [self._optimizer(group, sources) for group in self.identifiers]
        return sorted(
            found, key=lambda one: (one["name"] == UNNAMED, -one["counts"].total())
        )

    def _optimizer(self, group: Location, sources: dict[str, list[str]]) -> Record:
        members = self.members[group]
        made = self._made(members)
        names = dict.fromkeys(emitted.name for _, emitted in made)
        if not names:
            # nothing is rewritten: by the calls, such as optim.Adam(…)
            names = self._legacy_names(members)
        notes = {
            (member.where, member.site.note): None
            for member in members
            if member.site.note
        }
        expressions = self._expressions(made)
        proofs = [one["proof"] for one in expressions if one["proof"]]
        return {
            "identifier": self.identifiers[group],
            "name": self._name(group),
            "place": self.places.line(group),
            "counts": Counter(member.site.status for member in members),
            "evidence": Counter(member.site.evidence for member in members),
            "picture": flow(members, self.places, sources),
            "expressions": expressions,
            "verdicts": [*dict.fromkeys(proof["verdict"] for proof in proofs)],
            "mathematics": [
                _mathematics(name) for name in names if name in optimizers()
            ],
            "notes": [
                (self.places.line(place), self.places.text(note))
                for place, note in sorted(notes)
            ],
        }

    def _name(self, group: Location) -> str:
        members = self.members[group]
        names = [emitted.name for _, emitted in self._made(members)]
        return ", ".join(dict.fromkeys(names or self._legacy_names(members))) or UNNAMED

    def _made(self, members: Sequence[Step]) -> list[tuple[str, EmittedOptimizer]]:
        """The expressions that make the optimizers of a group, with the paths of their files."""
        places = {member.where for member in members}
        return [
            (path, emitted)
            for path in dict.fromkeys(place.path for place in sorted(places))
            for emitted in self.results[path].optimizers
            if Location(path, emitted.line) in places
        ]

    @staticmethod
    def _legacy_names(members: Sequence[Step]) -> dict[str, None]:
        """The legacy optimizers that sites of a group call."""
        words = re.compile(rf"\b({'|'.join(optimizers())})\(")
        return {
            match[1]: None
            for one in members
            if (match := words.search(one.site.before))
        }

    def _expressions(
        self, made: Sequence[tuple[str, EmittedOptimizer]]
    ) -> list[Record]:
        """The expressions of a group, each once."""
        alike: dict[tuple[str, str, str, str], list[tuple[str, EmittedOptimizer]]]
        alike = defaultdict(list)
        for path, emitted in made:
            texts = set_out(emitted.before), set_out(emitted.after)
            sides = emitted.legacy_expression, emitted.optax_expression
            alike[texts + sides].append((path, emitted))
        found: list[Record] = []
        for (before, after, *_), same in alike.items():
            places = [
                self.places.line(Location(path, emitted.line)) for path, emitted in same
            ]
            case = self.proofs.get(same[0][1])
            proof = _proof(case) if case is not None else None
            found.append(
                {
                    "places": places,
                    "before": highlighted(before),
                    "after": highlighted(after),
                    "proof": proof,
                }
            )
        return found

    def _file(self, result: FileResult) -> Record:
        anchors = self.places.anchors(result.path)
        found = excerpts(result, self.places.wanted(result.path), anchors)
        pending = sorted(result.sites, key=lambda site: (site.line, site.column))
        parts: list[Record] = []
        for excerpt in found:
            inside = [
                site for site in pending if excerpt.first <= site.line <= excerpt.last
            ]
            sites = [self._site(result, site) for site in inside]
            parts.append({"excerpt": excerpt, "sites": sites})
        signs = Counter(row.sign for excerpt in found for row in excerpt.rows)
        return {
            "file": self.places.file(result.path),
            "kind": result.kind,
            "changed": result.changed,
            "error": self.places.text(result.error or ""),
            "counts": Counter(site.status for site in result.sites),
            "parts": parts,
            "added": signs["+"],
            "removed": signs["-"],
        }

    def _site(self, result: FileResult, site: Site) -> Record:
        texts = ("message", "remedy", "note")
        return {
            **json.as_object(site),
            **{name: self.places.text(getattr(site, name) or "") for name in texts},
            "place": self.places.number(Location(result.path, site.line)),
            "optimizer": self.identifiers[site.group] if site.group is not None else "",
            "cause": self.places.line(site.cause) if site.cause is not None else None,
        }


def _totals(counts: Mapping[str, int], of: int) -> list[Record]:
    """The count of each status, and where its part of a bar begins and ends."""
    found: list[Record] = []
    start = 0.0
    for status in STATUSES:
        width = 100 * counts.get(status, 0) / max(of, 1)
        found.append(
            {
                "status": status,
                "count": counts.get(status, 0),
                "start": round(start, 2),
                "width": round(width, 2),
            }
        )
        start += width
    return found


def _is_removed(site: Site) -> bool:
    return site.code == REMOVED and site.status == "unresolved"


def _name(site: Site) -> str:
    """The name that is gone, of a site or hint about one."""
    # `jax.cond` is not in JAX
    quoted = site.message.split("`")
    if (site.remedy or site.code == UNKNOWN) and len(quoted) > 1:
        return quoted[1]
    return " ".join(site.before.split())


def set_out(expression: str) -> str:
    """An expression of several lines, as if it began at the left."""
    first, newline, rest = expression.partition("\n")
    lines = textwrap.dedent(rest)
    # optax.adamw(
    #     1e-3
    # )
    closes_at_left = any(line.startswith((")", "]", "}")) for line in lines.split("\n"))
    if not closes_at_left:
        lines = textwrap.indent(lines, "    ")
    return first + newline + lines


def _what(site: Site) -> str:
    if site.code == UNKNOWN:
        return site.remedy or "not known"
    return site.remedy or "has another name: `--modernize` renames it"


def _mathematics(name: str) -> Record:
    """The docstring of an optimizer's module, with the two rules apart."""
    summary, *paragraphs = optimizers()[name].documentation.split("\n\n")
    sides = {"Legacy": "", "optax": ""}
    remarks: list[str] = []
    for paragraph in paragraphs:
        # "Legacy: m = …\noptax: m = …" is split into "", "Legacy", "m = …", "optax", "m = …"
        before, *rest = SIDE.split(paragraph)
        if before:
            remarks.append(before)
        sides |= dict(zip(rest[::2], rest[1::2], strict=True))
    return {
        "name": name,
        "summary": summary,
        "legacy": sides["Legacy"],
        "optax": sides["optax"],
        "remarks": remarks,
    }


def _proof(case: Case) -> Record:
    from optim2optax.parity.judging.comparison import in_words
    from optim2optax.parity.reports.result import words

    found = case.comparison
    shown = {"verdict": words(case.outcome), "passes": case.passes}
    # the case ended before anything was compared
    if found is None:
        return {**shown, "figures": "", "remarks": case.reason.splitlines()}
    series = {
        "float64 error": found.error_by_step,
        "float32 drift": found.drift_by_step,
    }
    return {
        **shown,
        "figures": in_words(found),
        "remarks": case.remarks,
        "drawing": plot(series),
    }
