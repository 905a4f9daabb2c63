"""The updates of one optimizer, judged by the parts of its parameters that are recorded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.command.updates import Parts, Update, exact_parts
from optim2optax.parity.judging.comparison import (
    Comparison,
    Difference,
    LeafError,
    Verdict,
)
from optim2optax.parity.judging.exercised import FEWEST_STEPS, Evidence
from optim2optax.parity.judging.judge import judge
from optim2optax.parity.judging.movement import gradients_of_rounding
from optim2optax.parity.recording.sketch import Part, block, positions

COUNTED = ("NaN", "inf", "-inf")
"""What the part with counts counts, in this order."""


def rounding_alone(updates: Iterable[Update]) -> dict[str, bool]:
    """Of each leaf whose gradients are known, whether these are rounding alone."""
    sizes: dict[str, float] = {}
    for update in updates:
        for leaf, size in update.sizes.items():
            sizes[leaf] = max(size, sizes.get(leaf, 0.0))
    return gradients_of_rounding(sizes)


def judged_by_parts(
    start: Parts,
    old: Sequence[Update],
    new: Sequence[Update],
    gate: float | None,
    closed_loop: bool = True,
) -> Comparison:
    """Judge by every element and sum in the records.

    Each leaf and each kind of sum is judged by its own movement.
    """
    before = _stacked(old)
    after = _stacked(new)
    # A digest cannot be near another one: it only tells identical from equivalent, below.
    parts = {_name(part): part for part in before if part.name != "digest"}
    starts: dict[str, NDArray[Any]] = {}
    for name, part in parts.items():
        # Ahead of a step, large leaves have no counts.
        none = np.zeros_like(before[part][0])
        starts[name] = start.get(part, none)
    found = judge(
        {name: before[part] for name, part in parts.items()},
        {name: after[part] for name, part in parts.items()},
        starts,
        closed_loop=closed_loop,
        evidence=_evidence(parts, old, new),
        gate=gate,
    )
    if found.verdict in (Verdict.IDENTICAL, Verdict.EQUIVALENT):
        exact = exact_parts(before).items()
        same = all(values.tobytes() == after[part].tobytes() for part, values in exact)
        found = replace(
            found, verdict=Verdict.IDENTICAL if same else Verdict.EQUIVALENT
        )
    return replace(
        found,
        first_difference=_located(found.first_difference, parts),
        leaves=_leaves(found, parts),
    )


def _evidence(
    parts: Mapping[str, Part], old: Sequence[Update], new: Sequence[Update]
) -> Evidence:
    """What is known of updates beside their values."""
    # Observed values, such as a loss, are no parameters: no optimizer has to move them.
    if old[0].observed:
        return Evidence(FEWEST_STEPS, moved=True)
    known = rounding_alone([*old, *new])
    rounding = {
        name: known[part.leaf] for name, part in parts.items() if part.leaf in known
    }
    return Evidence(rounding=rounding)


def _stacked(updates: Sequence[Update]) -> Parts:
    """The parts after all updates, stacked along a leading axis of steps."""
    found: Parts = {}
    for part in updates[0].after:
        found[part] = np.stack([update.after[part] for update in updates])
    return found


def _name(part: Part) -> str:
    """The leaf that a part is to the judge, or a leaf of its own, so that it shares no movement."""
    if part.name in ("whole", "sample"):
        return part.leaf
    return f"{part.leaf}/{part.name}/all"


def _located(
    difference: Difference | None, parts: dict[str, Part]
) -> Difference | None:
    """A difference with the place in the leaf itself."""
    if difference is None:
        return None
    part = parts[difference.leaf]
    if part.name == "whole":
        return difference
    number = difference.index[0]
    if part.name == "sample":
        return replace(difference, index=_index_in_leaf(part, number))
    if part.name == "counts":
        what = COUNTED[number]
        return replace(difference, leaf=f"{part.leaf} (number of {what})", index=())
    # Of a sum only the block is known in which an element differs.
    first, last = block(number, part.shape)
    elements = f"{list(first)} to {list(last)}"
    return replace(
        difference, leaf=f"{part.leaf} (weighted sum of {elements})", index=()
    )


def _index_in_leaf(part: Part, number: int) -> tuple[int, ...]:
    """The index, in its leaf, of an element of a sample."""
    sample = positions(part.leaf, math.prod(part.shape))
    index = np.unravel_index(sample[number], part.shape)
    return tuple(int(place) for place in index)


def _leaves(found: Comparison, parts: dict[str, Part]) -> tuple[LeafError, ...]:
    """The figures of each leaf, of all its parts together."""
    leaves: dict[str, LeafError] = {}
    for error in found.leaves:
        part = parts[error.leaf]
        known = leaves.get(part.leaf, LeafError(part.leaf, part.shape, 0.0))
        leaves[part.leaf] = replace(
            known,
            error=max(known.error, error.error),
            finite=known.finite and error.finite,
        )
    return tuple(leaves.values())


def one_side_alone(
    old: Sequence[Update], new: Sequence[Update], number: int
) -> Comparison:
    """The difference of a step that one side takes and the other does not.

    It has NaN for the value of the side without the step.
    """
    is_old = len(old) > number
    alone = old[number] if is_old else new[number]
    part, values = next(iter(alone.after.items()))
    value = float(values.astype(np.float64).flat[0])
    # The first element of a leaf stands for the step that was taken.
    index = _index_in_leaf(part, 0) if part.name == "sample" else (0,) * len(part.shape)
    side = "old" if is_old else "new"
    counts = (
        f"the old side took {len(old)} steps of this optimizer, the new side {len(new)}"
    )
    difference = Difference(
        step=number if alone.step is None else alone.step,
        leaf=part.leaf,
        index=index,
        before=value if is_old else math.nan,
        after=math.nan if is_old else value,
        link=f"only the {side} side takes this step; {counts}",
    )
    return Comparison(Verdict.DIFFERENT, math.inf, number, first_difference=difference)
