"""A comparison in words, as reports and remarks have it."""

from __future__ import annotations

from optim2optax.parity.judging.comparison import (
    REPLAY_GATE,
    Comparison,
    Difference,
)

OPEN_LOOP = "This is the open loop: the old side's gradients, replayed."


def figures(comparison: Comparison) -> str:
    """Steps, error and drift in one line, and the gate where it is not that of a replay."""
    error = f"error over movement {comparison.error:.1e}{gate(comparison)}"
    text = f"{comparison.steps} steps, {error}"
    if comparison.drift is None:
        return text
    return f"{text}, float32 drift {comparison.drift:.1e}"


def gate(comparison: Comparison) -> str:
    """The gate of a comparison in brackets, where it is not that of a replay."""
    if comparison.gate == REPLAY_GATE:
        return ""
    return f" (closed loop, gate {comparison.gate:.0e})"


def place(difference: Difference) -> str:
    """Where a difference is, and how large, in one line."""
    text = str(difference)
    if difference.ulp is not None:
        text += f", {difference.ulp:,} ulp apart"
    if difference.link is not None:
        text += f"; what departs: {difference.link}"
    return text
