"""The report as JSON, strict and versioned."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from optim2optax.parity.reports.result import Case, Report

VERSION = 1
FIGURES = ("error", "drift", "gate", "steps")


def render_json(report: Report) -> str:
    """One object with version, summary, cases and environment.

    A number that is not finite is a string: "nan", "inf", "-inf".
    """
    content = {
        "version": VERSION,
        "summary": report.summary,
        "cases": [_case(case) for case in report.cases],
        "environment": asdict(report.environment),
    }
    return (
        json.dumps(_strict(content), indent=2, ensure_ascii=False, allow_nan=False)
        + "\n"
    )


def _case(case: Case) -> dict[str, Any]:
    """The object of a case; a case that could not run has null in the place of figures."""
    comparison = case.comparison
    difference = None if comparison is None else comparison.first_difference
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
