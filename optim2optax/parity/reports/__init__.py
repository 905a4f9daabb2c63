"""The reports of a parity run, one module per format."""

from optim2optax.parity.reports.as_json import render_json
from optim2optax.parity.reports.html import render_html
from optim2optax.parity.reports.junit import render_junit
from optim2optax.parity.reports.markdown import render_markdown
from optim2optax.parity.reports.terminal import render_text

__all__ = [
    "render_html",
    "render_json",
    "render_junit",
    "render_markdown",
    "render_text",
]
