"""A page on which a migration is reviewed: one file for a browser, with nothing outside of it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup, escape

from codemods.model import EmittedOptimizer
from optim2optax.reporting.html.code import highlighted
from optim2optax.reporting.html.records import page
from optim2optax.reporting.report import Report
from optim2optax.wording import counted

if TYPE_CHECKING:
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
    style, script = _file("page.css"), _file("page.js")
    template = _environment().get_template("page.html.j2")
    return template.render(
        page=page(report, proofs),
        style=Markup(style),
        script=Markup(script),
        # nothing else is loaded or run, whatever the code that is shown has in it
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["prose"] = _prose
    environment.filters["highlighted"] = highlighted
    environment.filters["counted"] = counted
    environment.filters["shown_by"] = SHOWN_BY.__getitem__
    return environment


def _file(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash by which a content security policy allows an inline style or script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _prose(text: str) -> Markup:
    """A text with what is in backquotes as code."""
    parts = [escape(part) for part in text.split("`")]
    # an odd number of backquotes: the last one stands for itself
    if len(parts) % 2 == 0:
        last = parts.pop()
        parts[-1] = Markup("`").join((parts[-1], last))
    for index in range(1, len(parts), 2):
        parts[index] = Markup("<code>{}</code>").format(parts[index])
    return Markup().join(parts)
