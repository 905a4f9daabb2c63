"""The report as one page for a browser, with nothing outside of it."""

from __future__ import annotations

from pathlib import Path

import jinja2

from optim2optax.parity.judging.comparison import REPLAY_GATE, figures, place
from optim2optax.parity.reports.result import Report
from optim2optax.plots import plot


def render_html(report: Report) -> str:
    """The page: totals, environment and contents, and the details of each case.

    These are its verdict, sources, error over steps, leaves, and script.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        report=report,
        figures=figures,
        place=place,
        plot=plot,
        gate=REPLAY_GATE,
    )
