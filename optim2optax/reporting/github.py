"""Annotations of a GitHub workflow run: `::warning file=…,line=…,title=CODE::message`."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.model import Site
from optim2optax.reporting.report import Report


def render(report: Report, *, colour: bool) -> str:
    return "".join(f"{line}\n" for line in _commands(report))


def _commands(report: Report) -> Iterator[str]:
    for result in report.results:
        if result.error is not None:
            yield _command("error", {"file": result.path}, result.error)
        for site in result.sites:
            properties = {"file": result.path, **_position(site), "title": site.code}
            if site.status == "unresolved":
                yield _command(
                    "warning", properties, f"{site.message}\nfix: {site.remedy}" if site.remedy else site.message
                )
            elif site.status == "rewritten" and report.preview:
                yield _command("notice", properties, f"would be rewritten: {site.message}")
        for line in result.unused_suppressions:
            yield _command(
                "notice",
                {"file": result.path, "line": str(line)},
                "unused suppression: there is nothing to ignore here",
            )


def _position(site: Site) -> dict[str, str]:
    """GitHub takes columns only for a range within one line."""
    if site.line != site.end_line:
        return {"line": str(site.line), "endLine": str(site.end_line)}
    return {"line": str(site.line), "col": str(site.column), "endColumn": str(site.end_column)}


def _command(name: str, properties: dict[str, str], message: str) -> str:
    described = ",".join(f"{key}={_escaped_property(value)}" for key, value in properties.items())
    return f"::{name} {described}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
