"""What is left where a project has a copy of a removed package.

Sites that use the copy are vendored, and need nothing more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from codemods.analysis.facts import Facts
from codemods.analysis.reflection import looks_up_module
from codemods.messages import text_of
from codemods.model import FileResult, Refusal, Site
from codemods.rules import reasons
from codemods.sources.modules import Span, Unit
from codemods.sources.places import Places
from codemods.vendoring.packages import RemovedPackage


@dataclass(frozen=True)
class Account:
    """Finds the status of each site.

    Some files are `pointed` at a copy, and others `failed`, that need one too. `left` is what still
    refers to the package in those that are pointed.
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
        refusal = reasons.unpointed(
            f"This cannot be pointed at the copy of `{self.package.name}`.",
            "Import that by its name, and say what is needed of it.",
        )
        for unit, span, text in left:
            if unit.line(span[0]) not in known:
                sites.append(left_site(unit, span, text, refusal))
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


def unpointed(
    units: Iterable[Unit], package: RemovedPackage
) -> dict[Unit, list[tuple[Span, str]]]:
    """The expressions that are of a package or build its name, with their text, by file."""
    units = list(units)
    try:
        facts = Facts(units)
    except RecursionError:
        facts = Facts(())
    found: dict[Unit, list[tuple[Span, str]]] = {}
    for unit in units:
        expressions = (node for node in unit.nodes if isinstance(node, ast.expr))
        left = [node for node in expressions if _gets_at(node, facts, package)]
        found[unit] = [(unit.span(node), unit.source(node)) for node in left]
    return found


def _gets_at(node: ast.expr, facts: Facts, package: RemovedPackage) -> bool:
    """Whether an expression is of a package, and none of its parts is.

    Variables, and their attributes, do not count.
    """
    match node:
        # Adam, behind `from flax.optim import Adam`
        case ast.Name():
            return _is_legacy(node, facts, package) and facts.names_legacy(node)
        # {"class": "flax.optim.Adam"}
        case ast.Constant(value=str(text)):
            names = "|".join(map(re.escape, package.names))
            return re.fullmatch(rf"(?:{names})(?:[.:]\w*)*", text) is not None
        # f"flax.optim.{name}"
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.startswith(tuple(f"{name}." for name in package.names))
    if looks_up_module(facts, node, package.name):
        return True
    if not _is_legacy(node, facts, package):
        return False
    # optim.Adam(rate).create(params): only the innermost part is listed
    for part in ast.walk(node):
        if part is node or not isinstance(part, ast.expr):
            continue
        if _is_legacy(part, facts, package):
            return False
    return True


def _is_legacy(node: ast.expr, facts: Facts, package: RemovedPackage) -> bool:
    prefixes = tuple(f"{name}." for name in package.names)
    return any(f"{name}.".startswith(prefixes) for name in facts.externals(node))
