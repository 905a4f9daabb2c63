"""Whether a command leaves the same files and lines of standard output on both sides.

Numbers are compared as in a closed loop, by what rounding makes of them: the old side runs once
more, with each new parameter off by a unit in the last place. A value that is quite another one
in that run, such as a time, proves nothing, and a remark says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from optim2optax.parity.command.outputs import Left, LeftBehind, Numbers
from optim2optax.parity.judging.comparison import (
    CLOSED_LOOP_GATE,
    Comparison,
    Difference,
    Verdict,
)
from optim2optax.parity.judging.exercised import named
from optim2optax.parity.judging.judge import error_over, index_of_largest
from optim2optax.parity.judging.movement import largest
from optim2optax.parity.judging.noise import FACTOR

VARIES = 1e-4
"""The part of its size by which a value may vary between two runs of the old side.

A value that varies more proves nothing: FACTOR times that is a hundredth.
"""

SLACK = 1.001
"""A difference of so many units of the last digit still counts as one: subtraction rounds."""


def compare_left_behind(
    old: LeftBehind,
    new: LeftBehind,
    again: LeftBehind | None,
    gate: float = CLOSED_LOOP_GATE,
) -> Comparison:
    """Judge what both sides left behind, by a further run of the old side, if there is one.

    The comparison counts as one step.
    """
    worst, unsteady = 0.0, []
    # The places of the old side come first, in their order, then those of the new side alone.
    for place in {**old, **new}:
        before = old.get(place)
        after = new.get(place)
        rerun = None if again is None else again.get(place)
        if again is not None and not _is_steady(before, rerun):
            unsteady.append(place)
            continue
        error = _error(before, after, rerun, gate)
        if error >= gate:
            first = _difference(place, before, after)
            return Comparison(
                Verdict.DIFFERENT, error, 1, first_difference=first, gate=gate
            )
        worst = max(worst, error)
    notes = (_on_unsteady(unsteady),) if unsteady else ()
    verdict = Verdict.EQUIVALENT if worst else Verdict.IDENTICAL
    if len(unsteady) == len(old):
        verdict = Verdict.NOTHING_PROVEN
    return Comparison(verdict, worst, 1, remarks=notes, gate=gate)


def _on_unsteady(places: Sequence[str]) -> str:
    """The remark on values that vary from run to run."""
    verb, them = ("varies", "it") if len(places) == 1 else ("vary", "them")
    return (
        f"{named(places)} {verb} from run to run of the old side, "
        f"so nothing is proven of {them}."
    )


def with_left_behind(found: Comparison, left: Comparison) -> Comparison:
    """The comparison of updates, with that of files and lines added to it."""
    if left.verdict is Verdict.DIFFERENT and found.verdict is not Verdict.DIFFERENT:
        first = left.first_difference
        assert first is not None
        # Files and lines count as one more step, after all others.
        last = replace(first, step=found.steps)
        return replace(left, steps=found.steps, first_difference=last)
    if left.verdict is Verdict.NOTHING_PROVEN:
        remarks = (*left.remarks, *found.remarks)
        return replace(found, verdict=Verdict.NOTHING_PROVEN, remarks=remarks)
    same = found.verdict is not Verdict.IDENTICAL or left.verdict is Verdict.IDENTICAL
    verdict = found.verdict if same else Verdict.EQUIVALENT
    return replace(found, verdict=verdict, remarks=(*found.remarks, *left.remarks))


def _is_steady(old: Left | None, again: Left | None) -> bool:
    """Whether a further run of the old side left about the same."""
    if not isinstance(old, Numbers) or not isinstance(again, Numbers):
        return old == again
    if old.values.shape != again.values.shape:
        return False
    # A loss that is printed as 0.13 varies by 0.01 if it varies at all.
    allowed = max(VARIES * largest(old.values), SLACK * old.printed)
    return _apart(old, again) <= allowed


def _error(
    old: Left | None, new: Left | None, again: Left | None, gate: float
) -> float:
    """How far both sides are apart, over the size of the numbers.

    It is less by as much as noise is above the gate.
    """
    # Texts are equal or not; so is a place that one side alone has.
    if not isinstance(old, Numbers) or not isinstance(new, Numbers):
        return 0.0 if old == new else math.inf
    if old.values.shape != new.values.shape:
        return math.inf
    apart = _apart(old, new)
    if not apart:
        return 0.0
    # In float64, what rounding does hardly ever shows in print.
    if gate > CLOSED_LOOP_GATE:
        last_digit = min(old.printed, new.printed)
        if apart <= SLACK * last_digit:
            return 0.0
    noise = FACTOR * _apart(old, again) if isinstance(again, Numbers) else 0.0
    # Of two limits, the wider one counts; the error is scaled to the gate by it.
    allowed = max(gate * largest(old.values), noise)
    return apart / allowed * gate if allowed else math.inf


def _apart(old: Numbers, new: Numbers) -> float:
    """The largest distance of two elements."""
    return float(np.max(error_over(1.0, old.values, new.values), initial=0.0))


def _difference(place: str, old: Left | None, new: Left | None) -> Difference:
    """The largest difference of numbers, or a description of what else is on either side."""
    if isinstance(old, Numbers) and isinstance(new, Numbers):
        before = old.values
        after = new.values
        if before.shape == after.shape:
            index = index_of_largest(error_over(1.0, before, after))
            return Difference(
                0, place, index, float(before[index]), float(after[index])
            )
    what = f"the old side leaves {_shown(old)}, the new side {_shown(new)}"
    return Difference(0, place, (), math.nan, math.nan, link=what)


def _shown(value: Left | None) -> str:
    match value:
        case None:
            return "nothing"
        case str():
            return repr(value)
        case Numbers():
            return f"numbers of shape {value.values.shape}"
