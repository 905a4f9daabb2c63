"""The error of a comparison over its steps, as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

WIDTH = 560
HEIGHT = 190
LEFT = 52
RIGHT = 12
TOP = 10
BOTTOM = 34
"""The size of the picture, and the margins around the lines, in pixels."""

SMALLEST, LARGEST = 1e-18, 1e18
"""Stand for zero, and for all that is larger, on a logarithmic axis."""


def plot(series: Mapping[str, Sequence[float]]) -> Markup:
    """Each series over steps on a logarithmic axis; empty if all are zero."""
    drawn = {name: values for name, values in series.items() if any(values)}
    if not drawn:
        return Markup()
    logarithms = {name: [*map(_logarithm, values)] for name, values in drawn.items()}
    everything = [value for values in logarithms.values() for value in values]
    low = math.floor(min(everything))
    # all values may be the same power of ten
    high = max(math.ceil(max(everything)), low + 1)
    steps = max(map(len, drawn.values()))
    parts = [_axes(low, high, steps)]
    for index, values in enumerate(logarithms.values()):
        points: list[str] = []
        for step, value in enumerate(values):
            x = _x(step, len(values))
            y = _y(value, low, high)
            points.append(f"{x:.1f},{y:.1f}")
        # a line of one point would not be seen
        points *= 2 if len(points) == 1 else 1
        line = Markup('<polyline class="series{}" points="{}"/>')
        parts.append(line.format(index + 1, " ".join(points)))
    names = " and ".join(drawn)
    label = f"{names} over steps, relative to movement"
    head = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">')
    head = head.format(WIDTH, HEIGHT, label)
    return head + Markup().join(parts) + Markup("</svg>")


def _axes(low: int, high: int, steps: int) -> Markup:
    parts = []
    # five lines of the grid at most
    stride = max(1, math.ceil((high - low) / 4))
    right = WIDTH - RIGHT
    for exponent in range(low, high + 1, stride):
        y = _y(exponent, low, high)
        line = Markup('<path class="grid" d="M{} {:.1f}H{}"/>')
        label = Markup('<text x="{}" y="{:.1f}" class="end">1e{}</text>')
        parts.append(line.format(LEFT, y, right))
        parts.append(label.format(LEFT - 6, y + 4, exponent))
    # below the lines, the numbers of the first step and the last
    bottom = HEIGHT - 8
    first = Markup('<text x="{}" y="{}">step 1</text>')
    last = Markup('<text x="{}" y="{}" class="end">{}</text>')
    parts.append(first.format(LEFT, bottom))
    parts.append(last.format(right, bottom, steps))
    return Markup().join(parts)


def _logarithm(value: float) -> float:
    if math.isnan(value):
        # what is no number is drawn at the top
        value = LARGEST
    within = min(max(value, SMALLEST), LARGEST)
    return math.log10(within)


def _x(step: int, steps: int) -> float:
    # a single step is at the left
    width = WIDTH - LEFT - RIGHT
    return LEFT + width * step / max(steps - 1, 1)


def _y(logarithm: float, low: int, high: int) -> float:
    # in SVG, y grows downwards
    height = HEIGHT - TOP - BOTTOM
    return TOP + height * (high - logarithm) / (high - low)
