"""The error of a comparison over its steps, as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

WIDTH, HEIGHT = 560, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 34
SMALLEST, LARGEST = 1e-18, 1e18
"""Stand for zero, and for all that is larger, on a logarithmic axis."""


def plot(series: Mapping[str, Sequence[float]]) -> Markup:
    """Each series over steps on a logarithmic axis; empty if all are zero."""
    drawn = {name: values for name, values in series.items() if any(values)}
    if not drawn:
        return Markup()
    logarithms = {name: [*map(_logarithm, values)] for name, values in drawn.items()}
    everything = [value for values in logarithms.values() for value in values]
    low, high = math.floor(min(everything)), math.ceil(max(everything))
    high = max(high, low + 1)
    parts = [_axes(low, high, max(map(len, drawn.values())))]
    for index, values in enumerate(logarithms.values()):
        points = " ".join(
            f"{_x(step, len(values)):.1f},{_y(value, low, high):.1f}"
            for step, value in enumerate(values)
        )
        parts.append(
            Markup('<polyline class="series{}" points="{}"/>').format(index + 1, points)
        )
    names = " and ".join(drawn)
    head = Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">'
    ).format(WIDTH, HEIGHT, f"{names} over steps, relative to movement")
    return head + Markup().join(parts) + Markup("</svg>")


def _axes(low: int, high: int, steps: int) -> Markup:
    parts = []
    stride = max(1, math.ceil((high - low) / 4))
    for exponent in range(low, high + 1, stride):
        y = _y(exponent, low, high)
        parts.append(
            Markup(
                '<path class="grid" d="M{} {y:.1f}H{}"/>'
                '<text x="{}" y="{:.1f}" class="end">{}</text>'
            ).format(LEFT, WIDTH - RIGHT, LEFT - 6, y + 4, f"1e{exponent}", y=y)
        )
    bottom = HEIGHT - 8
    parts.append(
        Markup(
            '<text x="{}" y="{b}">step 1</text><text x="{}" y="{b}" class="end">{}</text>'
        ).format(LEFT, WIDTH - RIGHT, steps, b=bottom)
    )
    return Markup().join(parts)


def _logarithm(value: float) -> float:
    if math.isnan(value):
        value = LARGEST
    return math.log10(min(max(value, SMALLEST), LARGEST))


def _x(step: int, steps: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * step / max(steps - 1, 1)


def _y(logarithm: float, low: int, high: int) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (high - logarithm) / (high - low)
