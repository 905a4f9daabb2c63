"""SARIF 2.1.0, the format of code-scanning services."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote

from codemods.model import FileResult, Site
from codemods.rules import Rule, catalogue
from optim2optax import __version__
from optim2optax.reporting.causes import TOLD
from optim2optax.reporting.report import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report) -> str:
    rules = catalogue()
    indices = {code: index for index, code in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "optim2optax",
                "version": __version__,
                "rules": [_rule(rule) for rule in rules.values()],
            }
        },
        # the columns of Python: SARIF counts in UTF-16 if nothing else is said
        "columnKind": "unicodeCodePoints",
        "results": list(_results(report, indices)),
        "invocations": [
            {
                "executionSuccessful": not report.errors,
                "toolExecutionNotifications": [
                    _notification(result) for result in report.errors
                ],
            }
        ],
    }
    return (
        json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)
        + "\n"
    )


def _notification(result: FileResult) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": result.error},
        "locations": [_location(result.path)],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    parts = [rule.explanation]
    if rule.before:
        parts.append(f"Before:\n{rule.before}")
    text = "\n\n".join(part for part in parts if part)  # a rule may have no explanation
    if rule.after:
        text += f"\nAfter:\n{rule.after}"
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation or rule.summary},
        "help": {"text": text or rule.summary},
        # FO9: the reasons for which something is left
        "defaultConfiguration": {
            "level": "warning" if rule.code.startswith("FO9") else "note"
        },
    }


def _results(report: Report, indices: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """What is left, suppressed or told and, if nothing was written, what would be rewritten."""
    told = (hint for hint in report.hints if hint[1].code in TOLD)
    for path, site in chain(report.sites, told):
        if site.status == "rewritten" and not report.preview:
            continue
        text = f"{site.message} Fix: {site.remedy}" if site.remedy else site.message
        described: dict[str, Any] = {
            "ruleId": site.code,
            "ruleIndex": indices[site.code],
            "level": site.severity.value,
            "message": {"text": text},
            "locations": [_location(path, site)],
        }
        if site.status == "suppressed":
            # services show a result with a suppression as dismissed
            described["suppressions"] = [{"kind": "inSource"}]
        yield described


def _location(path: str, site: Site | None = None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(path)}}
    if site is not None:
        physical["region"] = {
            "startLine": site.line,
            "startColumn": site.column,
            "endLine": site.end_line,
            "endColumn": site.end_column,
        }
    return {"physicalLocation": physical}
