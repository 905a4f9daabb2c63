"""The report as one page for a browser, with nothing outside of it."""

from __future__ import annotations

from pathlib import Path

from optim2optax.parity.judging.comparison import REPLAY_GATE, figures, place
from optim2optax.parity.reports.result import Report
from optim2optax.plots import plot
from optim2optax.templates import rendered


def render_html(report: Report) -> str:
    """The page: totals, environment and contents, and the details of each case.

    These are its verdict, sources, error over steps, leaves, and script.
    """
    return rendered(
        Path(__file__).with_name("report.html.j2"),
        report=report,
        figures=figures,
        place=place,
        plot=plot,
        gate=REPLAY_GATE,
    )
