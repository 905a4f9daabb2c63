"""The reports of a parity run: a template for each format, and JSON."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from optim2optax.parity.judging.comparison import (
    REPLAY_GATE,
    Verdict,
    figures,
    in_words,
    place,
)
from optim2optax.parity.reports.result import Case, Report
from optim2optax.plots import plot
from optim2optax.templates import rendered
from optim2optax.wording import escaped, markdown_cell

COLORS = {
    Verdict.IDENTICAL: "green",
    Verdict.EQUIVALENT: "green",
    Verdict.DIFFERENT: "red",
    Verdict.COULD_NOT_RUN: "yellow",
    Verdict.NOTHING_PROVEN: "yellow",
}
SIGNS = {"green": "✅", "red": "❌", "yellow": "⚠️"}
WIDTH = max(len(outcome.value) for outcome in Verdict)

VERSION = 1
FIGURES = ("error", "drift", "gate", "steps")


ENDINGS = {"text": "txt", "markdown": "md", "html": "html", "junit": "xml"}


def render(report: Report, name: str) -> str:
    """A report in a format.

    - `text`: a line for each case, those that do not pass first, with its remarks below it; then
      totals and environment. It has the colours of a terminal.
    - `markdown`, for a pull request or a CI run: a table, and a section for each case that does not
      pass.
    - `html`: one page for a browser, with nothing outside of it.
    - `junit`: XML, which most services display: a case that does not pass is a failure.
    - `json`: one object with version, summary, cases and environment.
    """
    if name == "json":
        return _json(report)
    filters: dict[str, Callable[..., Any]] = {
        "block": _block,
        "cell": markdown_cell,
        "colored": _colored,
        "dim": lambda text: click.style(text, dim=True),
        "escaped": escaped,
        "cleandoc": inspect.cleandoc,
        "figures": figures,
        "in_words": in_words,
        "place": place,
        "sign": lambda outcome: SIGNS[COLORS[outcome]],
    }
    template = Path(__file__).with_name(f"report.{ENDINGS[name]}.j2")
    return rendered(template, filters, report=report, plot=plot, gate=REPLAY_GATE)


def _colored(outcome: Verdict) -> str:
    """A verdict in its colour, as wide as the longest one."""
    return click.style(f"{outcome.words:<{WIDTH}}", fg=COLORS[outcome], bold=True)


def _block(text: str, language: str = "text") -> str:
    """A block of code in Markdown, in a fence longer than any in it."""
    fence = "```"
    # A source text may have a docstring with a fence in it.
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _json(report: Report) -> str:
    """The report as strict JSON: a number that is not finite is "nan", "inf" or "-inf"."""
    content = {
        "version": VERSION,
        "summary": report.summary,
        "cases": [_case(case) for case in report.cases],
        "environment": asdict(report.environment),
    }
    strict = _strict(content)
    return f"{json.dumps(strict, indent=2, ensure_ascii=False, allow_nan=False)}\n"


def _case(case: Case) -> dict[str, Any]:
    """The object of a case; a case that could not run has null in the place of figures."""
    comparison, difference = case.comparison, case.difference
    return {
        "name": case.name,
        "level": case.level,
        "verdict": case.outcome.value,
        **{name: getattr(comparison, name, None) for name in FIGURES},
        "remarks": [] if comparison is None else list(comparison.remarks),
        "reason": case.reason,
        "first_difference": None if difference is None else asdict(difference),
        "reproduction": case.reproduction,
    }


def _strict(value: Any) -> Any:
    """A value with texts in the place of NaN and infinity, which JSON does not have."""
    match value:
        case dict():
            return {key: _strict(item) for key, item in value.items()}
        case list() | tuple():
            return [_strict(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value
