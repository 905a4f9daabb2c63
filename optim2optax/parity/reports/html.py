"""The report as one page for a browser, with nothing outside of it."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import jinja2

from optim2optax.parity.judging.comparison import Comparison, figures, gate, place
from optim2optax.parity.reports.result import Report
from optim2optax.parity.reports.text import words

SMALLEST = 1e-18
"""Stands for zero on a logarithmic axis."""

LARGEST = 1e18
"""Stands for all that is larger.

A leaf that should not move makes errors of 1e307, too much for an axis to scale.
"""


def render_html(report: Report) -> str:
    """The page: totals, environment and contents, and the details of each case.

    These are its verdict, sources, error over steps, leaves, and script.
    """
    return _template().render(
        report=report, words=words, figures=figures, gate=gate, place=place, plot=plot
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")


def plot(comparison: Comparison) -> str:
    """Error and drift over steps as SVG, the same for the same figures; empty if all are zero."""
    series = {
        "float64 error": comparison.error_by_step,
        "float32 drift": comparison.drift_by_step,
    }
    shown = {name: values for name, values in series.items() if any(values)}
    if not shown:
        return ""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "optim2optax", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6, 2.4), layout="constrained")
        axes = figure.add_subplot()
        for name, values in shown.items():
            heights = [min(max(value, SMALLEST), LARGEST) for value in values]
            # A line of one point would not be seen.
            axes.plot(
                heights,
                label=name,
                linewidth=1.2,
                marker="o" if len(heights) == 1 else None,
            )
        axes.set(yscale="log", xlabel="step", ylabel="error over movement")
        axes.legend(frameon=False)
        text = io.StringIO()
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})  # type: ignore[no-untyped-call]
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
