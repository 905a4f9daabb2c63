"""The updates of one optimizer, judged by the parts of its parameters that are recorded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from optim2optax.parity.command.order import exact_parts
from optim2optax.parity.command.updates import Parts, Update
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
    known = rounding_alone([*old, *new])
    rounding = {name: known[part.leaf] for name, part in parts.items() if part.leaf in known}
    # Observed values, such as a loss, are no parameters: no optimizer has to move them.
    observed = Evidence(FEWEST_STEPS, moved=True)
    found = judge(
        {name: before[part] for name, part in parts.items()},
        {name: after[part] for name, part in parts.items()},
        {name: start.get(part, np.zeros_like(before[part][0])) for name, part in parts.items()},
        closed_loop=closed_loop,
        evidence=observed if old[0].observed else Evidence(rounding=rounding),
        gate=gate,
    )
    if found.verdict in (Verdict.IDENTICAL, Verdict.EQUIVALENT):
        exact = exact_parts(before).items()
        same = all(values.tobytes() == after[part].tobytes() for part, values in exact)
        found = replace(found, verdict=Verdict.IDENTICAL if same else Verdict.EQUIVALENT)
    return replace(
        found,
        first_difference=_located(found.first_difference, parts),
        leaves=_leaves(found, parts),
    )


def _stacked(updates: Sequence[Update]) -> Parts:
    """The parts after all updates, stacked along a leading axis of steps."""
    return {part: np.stack([update.after[part] for update in updates]) for part in updates[0].after}


def _name(part: Part) -> str:
    """The leaf that a part is to the judge, or a leaf of its own, so that it shares no movement."""
    return part.leaf if part.name in ("whole", "sample") else f"{part.leaf}/{part.name}/all"


def _located(difference: Difference | None, parts: dict[str, Part]) -> Difference | None:
    """A difference with the place in the leaf itself."""
    if difference is None:
        return None
    part = parts[difference.leaf]
    if part.name == "whole":
        return difference
    number = difference.index[0]
    if part.name == "sample":
        return replace(difference, index=_index_in_leaf(part, number))
    # The first element of counts is the number of NaN.
    if part.name == "counts":
        what = ("NaN", "inf", "-inf")[number]
        return replace(difference, leaf=f"{part.leaf} (number of {what})", index=())
    # Of a sum only the block is known in which an element differs.
    first, last = (list(index) for index in block(number, part.shape))
    return replace(difference, leaf=f"{part.leaf} (weighted sum of {first} to {last})", index=())


def _index_in_leaf(part: Part, number: int) -> tuple[int, ...]:
    """The index, in its leaf, of an element of a sample."""
    place = positions(part.leaf, math.prod(part.shape))[number]
    return tuple(map(int, np.unravel_index(place, part.shape)))


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


def one_side_alone(old: Sequence[Update], new: Sequence[Update], number: int) -> Comparison:
    """The difference of a step that one side takes and the other does not.

    It has NaN for the value of the side without the step.
    """
    side, alone = ("old", old[number]) if len(old) > number else ("new", new[number])
    part, values = next(iter(alone.after.items()))
    value = float(values.astype(np.float64).flat[0])
    # A number stands for the step that was taken.
    pair = (value, math.nan) if side == "old" else (math.nan, value)
    step = number if alone.step is None else alone.step
    counts = f"the old side took {len(old)} steps of this optimizer, the new side {len(new)}"
    index = _index_in_leaf(part, 0) if part.name == "sample" else (0,) * len(part.shape)
    link = f"only the {side} side takes this step; {counts}"
    difference = Difference(step, part.leaf, index, *pair, link=link)
    return Comparison(Verdict.DIFFERENT, math.inf, number, first_difference=difference)
