"""One module per output format: `render(report)` gives the text of a report."""

from __future__ import annotations

import importlib

from optim2optax.reporting.report import Report

FORMATS = ("text", "json", "github", "sarif")


def render(report: Report, output_format: str) -> str:
    """The text of a report in one of FORMATS, with a final newline unless it is empty."""
    module = importlib.import_module(f"optim2optax.reporting.{output_format}")
    return str(module.render(report))


__all__ = ["FORMATS", "Report", "render"]
