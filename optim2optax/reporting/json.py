"""JSON for other programs. Files without sites, changes and errors are only counted."""

from __future__ import annotations

import json
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
        "sites": [as_object(site) for site in result.sites],
        "unused_suppressions": list(result.unused_suppressions),
        "hints": [as_object(site) for site in result.hints],
    }
    if report.diff:
        # JSON has no bytes
        described["diff"] = unified_diff(result).decode("utf-8", "replace")
    return described


def as_object(site: Site) -> dict[str, Any]:
    """A site as an object of JSON."""
    return {
        "code": site.code,
        "line": site.line,
        "column": site.column,
        "end_line": site.end_line,
        "end_column": site.end_column,
        "status": site.status,
        "evidence": site.evidence,
        "message": site.message,
        "remedy": site.remedy,
        "note": site.note,
        "before": site.before,
        "after": site.after,
        "group": _place(site.group),
        "cause": _place(site.cause),
        "related": list(site.related),
    }


def _place(location: Location | None) -> dict[str, Any] | None:
    return location and {"path": location.path, "line": location.line}
