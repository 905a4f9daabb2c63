"""A page on which a migration is reviewed: one file for a browser, with nothing outside of it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from codemods.model import EmittedOptimizer, Location, Site
from codemods.optimizers import optimizers
from codemods.rules import catalogue
from optim2optax.plots import plot
from optim2optax.reporting.causes import ESCAPE, NOTE, entries, hinted
from optim2optax.reporting.diff import changed_lines
from optim2optax.reporting.html.excerpts import excerpts
from optim2optax.reporting.report import Report, Sites
from optim2optax.templates import rendered

if TYPE_CHECKING:
    from optim2optax.parity.judging.comparison import Comparison
    from optim2optax.parity.reports.result import Case

SHOWN_BY = {
    "proven": "traced to a constructor",
    "declared": "annotated",
    "deduced": "used as only an optimizer can be",
    "likely": "likely",
}
"""What shows that something is an optimizer, by kind of evidence."""

TEMPLATES = Path(__file__).parent / "templates"


def render_html(report: Report, proofs: Mapping[EmittedOptimizer, Case]) -> str:
    """The page of a report.

    Args:
      report: the results, of a run with `trace`, so that the ways of optimizers can be shown.
      proofs: the cases of parity, by the optimizers that were proven; none without `--verify`.
    """
    found = [*entries(report)]
    hints: dict[tuple[str, str, str], Sites] = defaultdict(list)
    for path, site in report.hints:
        if site.code != ESCAPE:
            hints[site.code, site.message, site.remedy or ""].append((path, site))
    lines = _linked_lines(report)
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    digest = hashlib.sha256(style.encode()).digest()
    return rendered(
        TEMPLATES / "page.html.j2",
        {"prose": _prose, "cleandoc": cleandoc},
        report=report,
        lines=lines,
        files={result.path: f"f{i}" for i, result in enumerate(report.results)},
        # what frees most sites for each place that is changed comes first
        left=sorted(
            (one for one in found if one.reason.code != NOTE),
            key=lambda one: -len(one.waiting) / len(one.sites),
        ),
        warnings=[
            *hinted(report, ESCAPE),
            *(one for one in found if one.reason.code == NOTE),
        ],
        hints=hints,
        groups=_groups(report),
        proofs=proofs,
        in_words=_in_words,
        plot=plot,
        excerpts=excerpts,
        changed_lines=changed_lines,
        optimizers=optimizers(),
        rules=catalogue(),
        shown_by=SHOWN_BY,
        style=Markup(style),
        # nothing else is loaded, and nothing run, whatever the code that is shown has in it
        policy=f"default-src 'none'; style-src 'sha256-{base64.b64encode(digest).decode()}'",
    )


def _linked_lines(report: Report) -> Mapping[str, set[int]]:
    """The lines of each file that the page has links to."""
    found: dict[str, set[int]] = {result.path: set() for result in report.results}
    for path, site in (*report.sites, *report.hints):
        found[path].add(site.line)
        for place in (site.cause, *site.way):
            if place is not None and place.path in found:
                found[place.path].add(place.line)
    return found


def _groups(report: Report) -> dict[Location, list[tuple[Location, Site]]]:
    """For each place of an optimizer, the sites of all that migrate with it."""
    members: dict[Location, list[tuple[Location, Site]]] = defaultdict(list)
    groups: dict[Location, Location] = {}
    for path, site in report.sites:
        if site.group is not None:
            place = Location(path, site.line)
            members[site.group].append((place, site))
            groups[place] = site.group
    return {place: members[group] for place, group in groups.items()}


def _in_words(found: Comparison) -> str:
    # it needs NumPy, as a comparison does
    from optim2optax.parity.judging.comparison import in_words

    return in_words(found)


def _prose(text: str) -> Markup:
    """A text with what is in backquotes as code."""
    code = Markup("<code>{}</code>")
    # every second part is what is between two backquotes
    parts = enumerate(re.split("`([^`]*)`", text))
    return Markup().join(
        code.format(part) if number % 2 else escape(part) for number, part in parts
    )
