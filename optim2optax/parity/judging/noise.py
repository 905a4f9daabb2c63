"""How far rounding alone takes a program apart.

In a closed loop, rounding feeds back, by how much depends on the program. Where the two sides are
further apart than a replay allows, the old side runs once more, with each new parameter off by a
unit in the last place. How far that takes it from itself is the measure of what rounding explains.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from optim2optax.parity.judging.comparison import (
    CLOSED_LOOP_GATE,
    REPLAY_GATE,
    Comparison,
    Verdict,
)

FACTOR = 100
"""The multiple of the effect of one unit in the last place that is still rounding.

It is more than one, as each side rounds more than once a step.
"""


def settled(
    found: Comparison,
    compare: Callable[[float], Comparison],
    noise: Callable[[], Comparison | None],
) -> Comparison:
    """Settle whether rounding explains how far the two sides of a closed loop are apart.

    That is asked for each leaf, and up to each step. `compare` gives the comparison `found` by
    another gate than CLOSED_LOOP_GATE, and `noise` that of the old side with itself, run with
    rounding, if there can be one.

    Returns:
        `found`; or a difference that rounding does not explain, though it is below that gate; or
        that nothing is proven, as rounding explains what is above it.
    """
    if found.gate != CLOSED_LOOP_GATE:
        return found
    if found.verdict not in (Verdict.EQUIVALENT, Verdict.DIFFERENT):
        return found
    if not REPLAY_GATE <= found.error < math.inf:
        return found
    rounding = noise()
    if rounding is None:
        return found
    limits = _errors_and_limits(found, rounding)
    unexplained = [limit for error, limit in limits if error >= limit]
    if found.verdict is Verdict.EQUIVALENT:
        if unexplained:
            # Below the gate, but more than rounding explains: a difference all the same.
            return compare(min(unexplained))
        gate = min(_limit(rounding.error), CLOSED_LOOP_GATE)
        return replace(found, gate=gate)
    if unexplained:
        return found
    # Above the gate, and not more than rounding explains.
    why = (
        f"Rounding alone takes this program {rounding.error:.1e} of its movement apart, "
        f"so a distance of {found.error:.1e} proves nothing: compare fewer steps."
    )
    return replace(
        found,
        verdict=Verdict.NOTHING_PROVEN,
        first_difference=None,
        remarks=(why,),
    )


def _errors_and_limits(
    found: Comparison, rounding: Comparison
) -> Iterator[tuple[float, float]]:
    """Errors, each with the part that rounding explains: of all, of each leaf, and of each step.

    A difference in a step may come from the gradients, and rounding of parameters gets into these
    in the step after that.
    """
    yield found.error, _limit(rounding.error)
    own = {leaf.leaf: leaf.error for leaf in rounding.leaves}
    for leaf in found.leaves:
        explained = own.get(leaf.leaf, rounding.error)
        yield leaf.error, _limit(explained)
    # Only where both are of the same leaves, steps are comparable.
    if own.keys() == {leaf.leaf for leaf in found.leaves}:
        so_far = [*itertools.accumulate(rounding.error_by_step, max), rounding.error]
        # Each step is compared with rounding up to the step after it.
        for error, explained in zip(found.error_by_step, so_far[1:], strict=False):
            yield error, _limit(explained)


def _limit(error: float) -> float:
    """How far apart rounding may take two sides, by how far it takes the old side from itself."""
    return max(REPLAY_GATE, FACTOR * error)
