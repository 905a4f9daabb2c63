"""JSON for other programs. Files without sites, changes and errors are only counted."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from codemods.model import FileResult, Location, Site
from optim2optax.reporting.diff import unified_diff
from optim2optax.reporting.report import Report

VERSION = 1


def render(report: Report) -> str:
    files = [
        _file(result, report)
        for result in report.results
        if result.changed
        or result.error
        or result.sites
        or result.unused_suppressions
        or result.hints
    ]
    described = {"version": VERSION, "summary": report.summary, "files": files}
    return json.dumps(described, indent=2) + "\n"


def _file(result: FileResult, report: Report) -> dict[str, Any]:
    described = {
        "path": result.path,
        "kind": result.kind,
        "changed": result.changed,
        "error": result.error,
        "sites": [_object(site) for site in result.sites],
        "unused_suppressions": list(result.unused_suppressions),
        "hints": [_object(site) for site in result.hints],
    }
    if report.diff:
        # JSON has no bytes
        described["diff"] = unified_diff(result).decode("utf-8", "replace")
    return described


def _object(site: Site) -> dict[str, Any]:
    described = asdict(site)
    del described["way"]
    described["group"] = _place(site.group)
    described["cause"] = _place(site.cause)
    return described


def _place(location: Location | None) -> dict[str, Any] | None:
    return location and {"path": location.path, "line": location.line}
