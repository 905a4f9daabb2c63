"""What a review page shows: a report as plain records, with links in the place of locations."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from codemods.model import EmittedOptimizer, FileResult, Location, Site
from codemods.optimizers import optimizers
from codemods.rules import Rule, catalogue
from optim2optax.reporting.causes import DEPENDENCIES, ESCAPE, LEFT, Sites, waiting
from optim2optax.reporting.html.code import highlighted
from optim2optax.reporting.html.excerpts import Excerpt, excerpts
from optim2optax.reporting.html.flows import Step, flow
from optim2optax.reporting.html.places import Link, Places
from optim2optax.reporting.html.plots import plot
from optim2optax.reporting.report import Report

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case

STATUSES = ("rewritten", "suppressed", "vendored", "unresolved")
EVIDENCE = ("proven", "declared", "deduced", "likely")
IMPORT, REMOVED, UNKNOWN = "FO911", "FO899", "FO898"
SIDE = re.compile(r"\b(Legacy|optax): ")
UNNAMED = "optimizer of unknown origin"


@dataclass(frozen=True)
class Total:
    """How many sites have a status, and their part of all in percent."""

    status: str
    count: int
    start: float
    width: float


@dataclass(frozen=True)
class Bar:
    """The totals of a file, in percent of those of the file that has most."""

    file: Link
    totals: Sequence[Total]


@dataclass(frozen=True)
class Dangling:
    """A name that is gone from JAX, Flax or NumPy, and is still used after the run."""

    name: str
    what: str
    uses: int
    files: Sequence[Link]


@dataclass(frozen=True)
class Dependency:
    """A declaration of a dependency that changes, or should."""

    file: Link
    code: str
    before: str
    after: str
    what: str


@dataclass(frozen=True)
class SiteRecord:
    """A site as the page shows it. `optimizer` is the identifier of its optimizer, or empty."""

    place: Link
    code: str
    status: str
    evidence: str
    message: str
    remedy: str
    note: str
    optimizer: str
    cause: Link | None


@dataclass(frozen=True)
class Part:
    """An excerpt of a file, and the sites within it."""

    excerpt: Excerpt
    sites: Sequence[SiteRecord]


@dataclass(frozen=True)
class FileRecord:
    """A file: what becomes of it, and its parts."""

    file: Link
    kind: str
    changed: bool
    error: str
    counts: Mapping[str, int]
    parts: Sequence[Part]
    added: int
    removed: int


@dataclass(frozen=True)
class Obstacle:
    """Sites that stand in the way for one reason, with one remedy."""

    code: str
    message: str
    remedy: str
    files: Sequence[tuple[Link, Sequence[Link]]]
    count: int
    way: Sequence[Link]


@dataclass(frozen=True)
class Cause:
    """Obstacles to one optimizer, and the sites that wait for them."""

    obstacles: Sequence[Obstacle]
    places: int
    first: Link
    waiting: int
    waiting_files: Sequence[tuple[Link, Sequence[Link]]]
    optimizer: str
    name: str

    @property
    def frees(self) -> int:
        """The number of sites that migrate when all obstacles are out of the way."""
        return self.waiting + self.places


@dataclass(frozen=True)
class Proof:
    """The verdict of parity on an optimizer, its figures, remarks, and the error over steps."""

    verdict: str
    passes: bool
    figures: str
    remarks: Sequence[str]
    drawing: Markup


@dataclass(frozen=True)
class Expression:
    """An expression that makes optimizers: where it is, old, new, and what parity says of it."""

    places: Sequence[Link]
    before: Markup
    after: Markup
    proof: Proof | None


@dataclass(frozen=True)
class Mathematics:
    """What an optimizer computes: in general, the old one, the new one, and what else there is."""

    name: str
    summary: str
    legacy: str
    optax: str
    remarks: Sequence[str]


@dataclass(frozen=True)
class OptimizerRecord:
    """All that migrates together: where it is made, where it goes, and what becomes of it."""

    identifier: str
    name: str
    place: Link
    counts: Mapping[str, int]
    evidence: Mapping[str, int]
    picture: Markup
    expressions: Sequence[Expression]
    mathematics: Sequence[Mathematics]
    notes: Sequence[tuple[Link, str]]

    @property
    def verdicts(self) -> Sequence[str]:
        """The different verdicts of parity on its expressions."""
        proofs = [made.proof for made in self.expressions]
        found = [proof.verdict for proof in proofs if proof is not None]
        return [*dict.fromkeys(found)]


@dataclass(frozen=True)
class Page:
    """All that a page shows."""

    title: str
    preview: bool
    summary: Mapping[str, int]
    totals: Sequence[Total]
    bars: Sequence[Bar]
    dangling: Sequence[Dangling]
    dependencies: Sequence[Dependency]
    errors: Sequence[tuple[Link, str]]
    suppressions: Sequence[Link]
    causes: Sequence[Cause]
    optimizers: Sequence[OptimizerRecord]
    files: Sequence[FileRecord]
    rules: Sequence[Rule]
    evidence: Sequence[str]
    codes: Sequence[str] = field(default=())


def page(report: Report, proofs: Mapping[EmittedOptimizer, Case]) -> Page:
    """The records of a page, given the cases of parity by the optimizers that were proven."""
    return _Records(report, proofs).page()


class _Records:
    def __init__(self, report: Report, proofs: Mapping[EmittedOptimizer, Case]) -> None:
        self.report = report
        self.proofs = proofs
        self.places = Places(report.results)
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

    def page(self) -> Page:
        report = self.report
        files = [
            self._file(result) for result in report.results if self._is_shown(result)
        ]
        sites = [site for _, site in report.sites]
        hints = [site for result in report.results for site in result.hints]
        codes = sorted({site.code for site in (*sites, *hints)} & catalogue().keys())
        of_sites = {site.code for site in sites}
        return Page(
            title=self.places.root.rstrip("/").rpartition("/")[2] or "this project",
            preview=report.preview,
            summary=report.summary,
            totals=_totals(Counter(site.status for site in sites), len(sites)),
            bars=self._bars(),
            dangling=self._dangling(),
            dependencies=self._dependencies(),
            errors=[
                (self.places.file(result.path), self.places.text(result.error or ""))
                for result in report.errors
            ],
            suppressions=[
                self.places.line(Location(result.path, line))
                for result in report.results
                for line in result.unused_suppressions
            ],
            causes=self._causes(),
            optimizers=self._optimizers(),
            files=files,
            rules=[catalogue()[code] for code in codes],
            evidence=[
                word
                for word in EVIDENCE
                if any(site.evidence == word for site in sites)
            ],
            codes=[code for code in codes if code in of_sites],
        )

    def _is_shown(self, result: FileResult) -> bool:
        return bool(result.changed or result.error or self.places.wanted(result.path))

    def _bars(self) -> list[Bar]:
        """A bar for each file with sites: first those with most left, then those with most."""
        found = [result for result in self.report.results if result.sites]
        longest = max((len(result.sites) for result in found), default=1)

        def order(result: FileResult) -> tuple[int, int]:
            return -self.report.of(result, "unresolved"), -len(result.sites)

        return [
            Bar(
                self.places.file(result.path),
                _totals(Counter(site.status for site in result.sites), longest),
            )
            for result in sorted(found, key=order)
        ]

    def _dangling(self) -> list[Dangling]:
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
            Dangling(
                name, what, len(paths), [*map(self.places.file, dict.fromkeys(paths))]
            )
            for (name, what), paths in by_count
        ]

    def _dependencies(self) -> list[Dependency]:
        return [
            self._dependency(result, site)
            for result in self.report.results
            for site in (*result.sites, *result.hints)
            if site.code.startswith(DEPENDENCIES)
        ]

    def _dependency(self, result: FileResult, site: Site) -> Dependency:
        what = site.remedy or ""
        # a site is changed in this run, a hint would be
        if not what and site not in result.sites:
            what = "`--modernize` changes it"
        message = self.places.text(site.message)
        return Dependency(
            self.places.file(result.path),
            site.code,
            " ".join(site.before.split()),
            site.after or "",
            f"{message} {what}".strip(),
        )

    def _causes(self) -> list[Cause]:
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

        def order(cause: Cause) -> tuple[float, int]:
            return -cause.frees / cause.places, -cause.frees

        return sorted(causes, key=order)

    def _cause(self, group: object, found: Sequence[tuple[FileResult, Site]]) -> Cause:
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
        return Cause(
            obstacles=self._obstacles(found),
            places=len(found),
            first=self.places.line(first),
            waiting=len(waiters),
            waiting_files=self._by_file(waiters),
            optimizer=self.identifiers[optimizer] if optimizer is not None else "",
            name=self._name(optimizer) if optimizer is not None else "",
        )

    def _obstacles(self, found: Sequence[tuple[FileResult, Site]]) -> list[Obstacle]:
        by_reason: dict[tuple[str, str, str], list[tuple[FileResult, Site]]] = (
            defaultdict(list)
        )
        for result, site in found:
            reason = site.message
            if site.status == "suppressed":
                reason = "This is suppressed or not selected."
            by_reason[site.code, reason, site.remedy or ""].append((result, site))
        return [
            Obstacle(
                code,
                self.places.text(message),
                self.places.text(remedy),
                self._by_file(
                    Location(result.path, site.line) for result, site in sites
                ),
                len(sites),
                [*map(self.places.line, sites[0][1].way)],
            )
            for (code, message, remedy), sites in by_reason.items()
        ]

    def _by_file(self, found: Iterable[Location]) -> list[tuple[Link, Sequence[Link]]]:
        by_path: dict[str, dict[Link, None]] = defaultdict(dict)
        for place in sorted(found):
            # each line once, though it may have several sites
            by_path[place.path][self.places.number(place)] = None
        return [(self.places.file(path), [*lines]) for path, lines in by_path.items()]

    def _optimizers(self) -> list[OptimizerRecord]:
        sources = {
            path: result.before.decode("utf-8", "replace").split("\n")
            for path, result in self.results.items()
            if self.places.wanted(path)
        }
        found = [self._optimizer(group, sources) for group in self.identifiers]
        return sorted(
            found, key=lambda one: (one.name == UNNAMED, -sum(one.counts.values()))
        )

    def _optimizer(
        self, group: Location, sources: dict[str, list[str]]
    ) -> OptimizerRecord:
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
        return OptimizerRecord(
            identifier=self.identifiers[group],
            name=self._name(group),
            place=self.places.line(group),
            counts=Counter(member.site.status for member in members),
            evidence=Counter(member.site.evidence for member in members),
            picture=flow(members, self.places, sources),
            expressions=self._expressions(made),
            mathematics=[_mathematics(name) for name in names if name in optimizers()],
            notes=[
                (self.places.line(place), self.places.text(note))
                for place, note in sorted(notes)
            ],
        )

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
    ) -> list[Expression]:
        """The expressions of a group, each once."""
        alike: dict[tuple[str, str, str, str], list[tuple[str, EmittedOptimizer]]]
        alike = defaultdict(list)
        for path, emitted in made:
            texts = set_out(emitted.before), set_out(emitted.after)
            sides = emitted.legacy_expression, emitted.optax_expression
            alike[(*texts, *sides)].append((path, emitted))
        found: list[Expression] = []
        for (before, after, *_), same in alike.items():
            places = [
                self.places.line(Location(path, emitted.line)) for path, emitted in same
            ]
            case = self.proofs.get(same[0][1])
            proof = _proof(case) if case is not None else None
            found.append(
                Expression(places, highlighted(before), highlighted(after), proof)
            )
        return found

    def _file(self, result: FileResult) -> FileRecord:
        anchors = self.places.anchors(result.path)
        found = excerpts(result, self.places.wanted(result.path), anchors)
        pending = sorted(result.sites, key=lambda site: (site.line, site.column))
        parts: list[Part] = []
        for excerpt in found:
            inside = [
                site for site in pending if excerpt.first <= site.line <= excerpt.last
            ]
            parts.append(Part(excerpt, [self._site(result, site) for site in inside]))
        signs = Counter(row.sign for excerpt in found for row in excerpt.rows)
        return FileRecord(
            file=self.places.file(result.path),
            kind=result.kind,
            changed=result.changed,
            error=self.places.text(result.error or ""),
            counts=Counter(site.status for site in result.sites),
            parts=parts,
            added=signs["+"],
            removed=signs["-"],
        )

    def _site(self, result: FileResult, site: Site) -> SiteRecord:
        return SiteRecord(
            place=self.places.number(Location(result.path, site.line)),
            code=site.code,
            status=site.status,
            evidence=site.evidence,
            message=self.places.text(site.message),
            remedy=self.places.text(site.remedy or ""),
            note=self.places.text(site.note),
            optimizer=self.identifiers[site.group] if site.group is not None else "",
            cause=self.places.line(site.cause) if site.cause is not None else None,
        )


def _totals(counts: Mapping[str, int], of: int) -> list[Total]:
    """The count of each status, and where its part of a bar begins and ends."""
    found: list[Total] = []
    start = 0.0
    for status in STATUSES:
        width = 100 * counts.get(status, 0) / max(of, 1)
        found.append(
            Total(status, counts.get(status, 0), round(start, 2), round(width, 2))
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


def _mathematics(name: str) -> Mathematics:
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
    return Mathematics(name, summary, sides["Legacy"], sides["optax"], remarks)


def _proof(case: Case) -> Proof:
    from optim2optax.parity.judging.comparison import figures
    from optim2optax.parity.reports.text import words

    found = case.comparison
    # the case ended before anything was compared
    if found is None:
        return Proof(
            words(case.outcome), case.passes, "", case.reason.splitlines(), Markup()
        )
    series = {
        "float64 error": found.error_by_step,
        "float32 drift": found.drift_by_step,
    }
    return Proof(
        words(case.outcome), case.passes, figures(found), case.remarks, plot(series)
    )
