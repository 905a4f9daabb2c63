"""A program that insists on float32: its updates alone are judged, computed anew in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from optim2optax.parity.command.compare import (
    DifferentParametersError,
    compare_replays,
    compare_updates,
)
from optim2optax.parity.command.optimizers import shown_kind, why_not_replayed
from optim2optax.parity.command.runs import CommandError, Runs
from optim2optax.parity.command.updates import by_kind, of_optimizers
from optim2optax.parity.judging.comparison import Comparison, Verdict

FLOAT32_GATE = 1e-5
"""The gate of a closed loop in float32, unless rounding explains more,"""

FACTOR_IN_FLOAT32 = 20
"""which is so many times what becomes of one unit in the last place.

The usual factor would let faults of a thousandth pass.
"""

IN_FLOAT32 = (
    "The program insists on float32. "
    "It ran in that, and its updates alone are judged, computed anew in float64."
)


def keeps_float32(runs: Runs) -> bool:
    """Whether either side has parameters in float32, though float64 is the default."""
    for side in (runs.old, runs.new):
        for updates in of_optimizers(side).values():
            if any(values.dtype == np.float32 for values in updates[0].after.values()):
                return True
    return False


def compared_in_float32(runs: Runs) -> Comparison | None:
    """Judge a program that insists on float32 by its updates, which are computed anew in float64.

    The closed loop has the last word where it departs by more than rounding explains. The result
    is None if the program does not run in its own precision either.
    """
    try:
        closed = _closed_loop_in_float32(runs)
    except (CommandError, DifferentParametersError):
        return None
    if closed.verdict is Verdict.DIFFERENT:
        return replace(closed, remarks=(IN_FLOAT32, *closed.remarks))
    shadows = by_kind(runs.old.replays)
    replays = by_kind(runs.new.replays)
    judged = []
    for kind, updates in of_optimizers(runs.old).items():
        if kind not in shadows or kind not in replays:
            reason = why_not_replayed(kind, updates, runs.new)
            why = f"Of {shown_kind(kind)} that cannot be done: {reason}."
            return replace(
                closed, verdict=Verdict.NOTHING_PROVEN, remarks=(IN_FLOAT32, why)
            )
        judged.append(compare_replays(updates, replays[kind], shadows[kind]))
    worst = _worst(judged)
    return replace(
        worst,
        drift=closed.error,
        drift_by_step=closed.error_by_step,
        remarks=(IN_FLOAT32, *worst.remarks),
    )


def _closed_loop_in_float32(runs: Runs) -> Comparison:
    """The closed loop, by a gate that takes in what rounding in float32 does to this program."""
    old, new = runs.old.updates, runs.new.updates
    closed = compare_updates(old, new, FLOAT32_GATE)
    if closed.error >= FLOAT32_GATE and runs.again is not None:
        noise = compare_updates(old, runs.again.updates).error
        closed = compare_updates(old, new, max(FLOAT32_GATE, FACTOR_IN_FLOAT32 * noise))
    return closed


def _worst(judged: Sequence[Comparison]) -> Comparison:
    """The comparison with the largest error, of those that differ, else the unproven, else all."""
    different = [found for found in judged if found.verdict is Verdict.DIFFERENT]
    unproven = [found for found in judged if found.verdict is Verdict.NOTHING_PROVEN]
    return max(different or unproven or judged, key=lambda found: found.error)
