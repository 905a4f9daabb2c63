"""Annotations of a GitHub workflow run: `::warning file=…,line=…,title=CODE::message`.

The most important come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codemods.model import Site
from optim2optax.reporting.causes import TOLD
from optim2optax.reporting.report import Report

KINDS = ("error", "warning", "notice")
MOST = 10
"""The number of annotations of each kind that GitHub shows for a step. It drops the others."""

CONSEQUENCES = ("FO901", "FO911", "FO914")
"""Codes of sites that are left because of others: these come last."""


class WorkflowCommand(NamedTuple):
    """One workflow command: a kind, properties such as the file and the line, and a message."""

    kind: str
    properties: dict[str, str]
    message: str

    def __str__(self) -> str:
        escaped = {key: _escaped(value) for key, value in self.properties.items()}
        described = ",".join(
            f"{key}={value.replace(':', '%3A').replace(',', '%2C')}"
            for key, value in escaped.items()
        )
        return f"::{self.kind} {described}::{_escaped(self.message)}"


def render(report: Report) -> str:
    # an error has no title
    annotations = sorted(
        _annotations(report),
        key=lambda one: one.properties.get("title") in CONSEQUENCES,
    )
    shown: list[str] = []
    for kind in KINDS:
        shown += _bounded(kind, [found for found in annotations if found.kind == kind])
    return "".join(f"{line}\n" for line in shown)


def _bounded(kind: str, annotations: Sequence[WorkflowCommand]) -> list[str]:
    """As many annotations as GitHub shows; the last of them says how many more there are."""
    # each once: a constructor and its `create` are two sites at one place
    lines = [*dict.fromkeys(map(str, annotations))]
    if len(lines) <= MOST:
        return lines
    left = len(lines) - MOST + 1
    message = (
        f"{left} more like these: `optim2optax rewrite --diff --verbose` without "
        "`--output-format` shows all of them"
    )
    return [
        *lines[: MOST - 1],
        str(WorkflowCommand(kind, {"title": "optim2optax"}, message)),
    ]


def _annotations(report: Report) -> Iterator[WorkflowCommand]:
    for result in report.results:
        if result.error is not None:
            yield WorkflowCommand("error", {"file": result.path}, result.error)
        for site in result.sites:
            properties = {"file": result.path, **_position(site), "title": site.code}
            if site.status == "unresolved":
                message = site.message
                if site.remedy:
                    message = f"{message}\nfix: {site.remedy}"
                yield WorkflowCommand("warning", properties, message)
            elif site.status == "vendored":
                yield WorkflowCommand("notice", properties, f"vendored: {site.message}")
            elif site.status == "rewritten" and report.preview:
                yield WorkflowCommand(
                    "notice", properties, f"would be rewritten: {site.message}"
                )
        for site in result.hints:
            if site.code in TOLD:
                position = _position(site)
                properties = {"file": result.path, **position, "title": site.code}
                yield WorkflowCommand("notice", properties, site.message)
        for line in result.unused_suppressions:
            properties = {"file": result.path, "line": str(line)}
            message = "unused suppression: there is nothing to ignore here"
            yield WorkflowCommand("notice", properties, message)


def _position(site: Site) -> dict[str, str]:
    """The properties of a place. GitHub takes columns only for a range within one line."""
    if site.line != site.end_line:
        return {"line": str(site.line), "endLine": str(site.end_line)}
    return {
        "line": str(site.line),
        "col": str(site.column),
        "endColumn": str(site.end_column),
    }


def _escaped(text: str) -> str:
    # % first: the other escapes begin with it
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
