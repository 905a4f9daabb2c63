"""How far rounding alone takes a program: the old side once more, with each new parameter off by a unit in the last place.

In a closed loop, rounding feeds back, by how much depends on the program. Where the two sides are further apart than a replay
allows, the old side runs a third time, and what a unit in the last place becomes there is the measure of what rounding explains.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from optim2optax.parity.judge import CLOSED_LOOP_GATE, REPLAY_GATE, Comparison, Verdict

FACTOR = 100
"""So many times what becomes of one unit in the last place is still rounding: each side rounds more than once a step."""


def settled(found: Comparison, compare: Callable[[float], Comparison], noise: Callable[[], float | None]) -> Comparison:
    """Settle whether rounding explains how far the two sides of a closed loop are apart.

    Args:
        found: the comparison by CLOSED_LOOP_GATE.
        compare: gives the same comparison by another gate.
        noise: gives the error over movement of the old side, run with rounding, against itself; None if that is not to be had.
            It is asked only where it matters.

    Returns:
        `found`; or a difference that rounding does not explain, though it is below that gate; or that nothing is proven, as
        rounding explains what is above it.
    """
    is_open = found.gate != CLOSED_LOOP_GATE or found.verdict not in (Verdict.EQUIVALENT, Verdict.DIFFERENT)
    if is_open or not REPLAY_GATE <= found.error < math.inf or (moved := noise()) is None:
        return found
    limit = max(REPLAY_GATE, FACTOR * moved)
    if found.verdict is Verdict.EQUIVALENT:
        return compare(limit) if found.error >= limit else replace(found, gate=min(limit, CLOSED_LOOP_GATE))
    if found.error >= limit:
        return found
    why = (
        f"Rounding alone takes this program {moved:.1e} of its movement apart, "
        f"so a distance of {found.error:.1e} proves nothing: compare fewer steps."
    )
    return replace(found, verdict=Verdict.NOTHING_PROVEN, first_difference=None, remarks=(why,))
