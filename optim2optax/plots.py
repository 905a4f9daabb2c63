"""The error of a comparison over its steps, as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup, escape

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
    label = escape(f"{' and '.join(drawn)} over steps, relative to movement")
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">',
        *_axes(low, high, steps),
    ]
    for index, values in enumerate(logarithms.values(), 1):
        points = [
            f"{_x(step, len(values)):.1f},{_y(value, low, high):.1f}"
            for step, value in enumerate(values)
        ]
        # a line of one point would not be seen
        points *= 2 if len(points) == 1 else 1
        parts.append(f'<polyline class="series{index}" points="{" ".join(points)}"/>')
    return Markup("".join((*parts, "</svg>")))


def _axes(low: int, high: int, steps: int) -> Iterator[str]:
    # five lines of the grid at most
    stride = max(1, math.ceil((high - low) / 4))
    right = WIDTH - RIGHT
    for exponent in range(low, high + 1, stride):
        y = _y(exponent, low, high)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="end">1e{exponent}</text>'
    # below the lines, the numbers of the first step and the last
    yield f'<text x="{LEFT}" y="{HEIGHT - 8}">step 1</text>'
    yield f'<text x="{right}" y="{HEIGHT - 8}" class="end">{steps}</text>'


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
