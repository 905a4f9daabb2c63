"""What a run exercised: two sides that agree where nothing moves prove nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.judging.movement import LeafTrajectories

FEWEST_STEPS = 10
"""In fewer steps, wrong counters and moments hardly show."""

NAMED = 3
"""The number of leaves that a remark names; it counts the others."""


@dataclass(frozen=True)
class Evidence:
    """Facts of a run beside the values that are compared.

    `taken` is how many steps the optimizers took (None: as many as there are values), `moved`
    whether any of them moved a parameter (None: the values tell). `idle` leaves should never move,
    and need no remark. `rounding` says of each parameter whose gradients are known whether these
    are rounding alone. `remarks` are on what else was not exercised.
    """

    taken: int | None = None
    moved: bool | None = None
    idle: Collection[str] = ()
    rounding: Mapping[str, bool] = field(default_factory=dict)
    remarks: Sequence[str] = ()


def why_nothing_is_proven(
    before: LeafTrajectories, start: LeafTrajectories, evidence: Evidence
) -> str | None:
    """Why a run proves nothing though both sides agree, in one sentence.

    It is None if the run proves something.
    """
    if not any(values.size for values in before.values()):
        return "Nothing was compared."
    taken = _length(before) if evidence.taken is None else evidence.taken
    if taken < FEWEST_STEPS:
        steps = "1 step was" if taken == 1 else f"{taken} steps were"
        return (
            f"Only {steps} taken, and fewer than {FEWEST_STEPS} prove nothing: "
            "wrong counters and moments hardly show."
        )
    floats = _floating(before)
    if floats:
        # A training that diverges on both sides ends in NaN, which equals NaN.
        last = max(map(_last_finite, floats.values()))
        if last < _length(before) - 1:
            step = last + 1
            return f"From step {step} on, no value is finite on either side, so nothing is proven."
    moved = evidence.moved
    if moved is None:
        # Integers, such as a counter, move even if the learning rate is 0.
        leaves = floats or before
        moved = any(
            not is_still(values, start[leaf]) for leaf, values in leaves.items()
        )
    if moved:
        return None
    return "No parameter ever moved, as with a learning rate of zero, so nothing is proven."


def remarks(
    before: LeafTrajectories, start: LeafTrajectories, evidence: Evidence
) -> Iterator[str]:
    """What a run did not exercise of some leaves, a sentence each."""
    lost: dict[str, int] = {}
    still: list[str] = []
    for leaf, values in _floating(before).items():
        finite = _finite(values)
        if not finite.all():
            # The first step in which not all elements are finite.
            lost[leaf] = int(np.argmin(finite.all(axis=1)))
        elif leaf not in evidence.idle and is_still(values, start[leaf]):
            still.append(leaf)
    if lost:
        yield (
            f"From step {min(lost.values())} on, values of {named(lost)} "
            "are not finite on either side, so nothing is proven of these."
        )
    if still:
        them = "it" if len(still) == 1 else "them"
        yield f"{named(still)} never moved, so nothing is proven of {them}."
    yield from evidence.remarks


def is_still(values: NDArray[Any], start: NDArray[Any]) -> bool:
    """Whether a leaf keeps its start in all steps, wherever it is finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        is_finite = np.isfinite(values.astype(np.float64))
        moves = (values != start) & is_finite
    return not np.any(moves)


def named(leaves: Collection[str]) -> str:
    """Leaves as people read them: some by name, the others by number."""
    names = sorted(leaves)
    shown = names[:NAMED]
    others = len(names) - NAMED
    words = [*shown, f"{others} more"] if others > 0 else shown
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _length(trajectories: LeafTrajectories) -> int:
    first = next(iter(trajectories.values()), ())
    return len(first)


def _floating(trajectories: LeafTrajectories) -> dict[str, NDArray[Any]]:
    """The leaves of floating-point or complex numbers; `jnp` knows bfloat16 as such, too."""
    return {
        leaf: values
        for leaf, values in trajectories.items()
        if values.size and jnp.issubdtype(values.dtype, jnp.inexact)
    }


def _finite(values: NDArray[Any]) -> NDArray[np.bool_]:
    """For each step, whether each element is finite."""
    found: NDArray[np.bool_] = np.isfinite(values.astype(np.float64))
    return found.reshape(len(values), -1)


def _last_finite(values: NDArray[Any]) -> int:
    """The last step in which any element is finite; -1 if there is none."""
    steps = np.flatnonzero(_finite(values).any(axis=1))
    return int(steps[-1]) if steps.size else -1
