"""Whether two sides of a command applied the same updates, and kept the same states.

They are judged by the parts of the parameters that are recorded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.command.runs import CommandError
from optim2optax.parity.command.updates import (
    ByKind,
    Correspondence,
    Kind,
    Parts,
    Update,
    by_step,
    exact_parts,
    first_of_each_step,
    in_order,
)
from optim2optax.parity.judging.comparison import (
    Comparison,
    Difference,
    LeafError,
    Verdict,
)
from optim2optax.parity.judging.exercised import FEWEST_STEPS, Evidence
from optim2optax.parity.judging.judge import judge, judge_states
from optim2optax.parity.judging.movement import gradients_of_rounding, stacked
from optim2optax.parity.recording.sketch import Part, block, index_of, positions

NAMED = 3
"""The number of leaves that a message names."""


class DifferentParametersError(CommandError):
    """One side steps parameters that the other does not have."""


def compare_updates(old: ByKind, new: ByKind, gate: float | None = None) -> Comparison:
    """Judge two recordings.

    Updates correspond by their leaves, their count if that is known, and the order in which they
    came. Where one side alone takes a step, that is a difference, unless nothing moves in it.
    `gate` replaces that of a closed loop.

    Raises:
        DifferentParametersError: if the two sides step different parameters.
    """
    if old.keys() != new.keys():
        raise DifferentParametersError(_alone(old.keys(), new.keys()))
    compared = [_compare(updates, new[kind], gate) for kind, updates in old.items()]
    # the first of those that differ first
    different = {
        found.first_difference.step: found
        for found in reversed(compared)
        if found.first_difference is not None
    }
    return different[min(different)] if different else _worst_with_notes(compared)


def _worst_with_notes(compared: Sequence[Comparison]) -> Comparison:
    """The comparison with the largest error, with remarks on those that prove nothing."""
    unproven = [found for found in compared if found.verdict is Verdict.NOTHING_PROVEN]
    # An optimizer that never moves does not hide what the others prove.
    proven = [found for found in compared if found not in unproven]
    worst = max(proven or unproven, key=lambda found: found.error)
    notes: list[str] = []
    for found in unproven:
        if found is not worst:
            notes += [
                f"Of {found.leaves[0].leaf}: {remark}" for remark in found.remarks
            ]
    return replace(worst, remarks=(*worst.remarks, *notes))


def _alone(before: Iterable[Kind], after: Iterable[Kind]) -> str:
    """The message on parameters that one side alone steps."""
    old = set(chain.from_iterable(before))
    new = set(chain.from_iterable(after))
    sides: list[str] = []
    for side, alone in (("old", old - new), ("new", new - old)):
        if alone:
            named = sorted(alone)[:NAMED]
            leaves = ", ".join(f"{leaf} of shape {shape}" for leaf, shape in named)
            sides.append(f"only the {side} side steps {leaves}")
    # One side has two optimizers where the other has one.
    what = "; ".join(sides) or "the same leaves in other groups"
    return f"the two sides step different parameters: {what}"


def _compare(old: list[Update], new: list[Update], gate: float | None) -> Comparison:
    """Judge the updates of one kind."""
    updates, others = in_order(old, new)
    start = _start(old)
    # A step that one side alone takes is looked at only if the steps before it agree.
    number = min(len(updates), len(others))
    if number:
        found = judged_by_parts(start, updates[:number], others[:number], gate)
        if found.first_difference is not None or len(updates) == len(others):
            return found
    return one_side_alone(updates, others, number)


def _start(updates: Sequence[Update]) -> Parts:
    """The parameters ahead of the first step, if they are known, else those after it."""
    for update in updates:
        if update.before:
            return update.before
    return updates[0].after


def compare_replays(
    old: Sequence[Update],
    replays: Sequence[Update],
    shadow: Sequence[Update] | None = None,
) -> Comparison:
    """Judge the replays, on the new side, of the old side's first steps of one kind.

    `shadow` are the same steps as the old side computes them in float64, where it ran in float32.
    """
    start = _start(old)
    before = by_step(old) if shadow is None else first_of_each_step(shadow)
    after = first_of_each_step(replays)
    steps = min(len(before), len(after))
    return judged_by_parts(start, before[:steps], after[:steps], closed_loop=False)


def compare_states(
    old: Sequence[Update],
    new: Sequence[Update],
    places: Sequence[Correspondence],
    gate: float | None = None,
) -> Comparison | None:
    """Judge what the optimizers of one kind keep beside their parameters.

    The result is None where nothing corresponds.
    """
    updates, others = in_order(old, new)
    pairs = (
        (place, _states_at(source, updates), _states_at(place, others), sign)
        for place, source, sign in places
    )
    evidence = Evidence(FEWEST_STEPS, rounding=rounding_alone([*old, *new]))
    return judge_states(pairs, closed_loop=True, evidence=evidence, gate=gate)


def _states_at(place: str, updates: Sequence[Update]) -> list[NDArray[Any]]:
    """The values at a place of the state, after each update."""
    found: list[NDArray[Any]] = []
    for update in updates:
        found += [values for part, values in update.state.items() if part.leaf == place]
    return found


COUNTED = ("NaN", "inf", "-inf")
"""What the part with counts counts, in this order."""


def rounding_alone(updates: Iterable[Update]) -> dict[str, bool]:
    """Of each leaf whose gradients are known, whether these are rounding alone."""
    return gradients_of_rounding(update.sizes for update in updates)


def judged_by_parts(
    start: Parts,
    old: Sequence[Update],
    new: Sequence[Update],
    gate: float | None = None,
    closed_loop: bool = True,
) -> Comparison:
    """Judge by every element and sum in the records.

    Each leaf and each kind of sum is judged by its own movement.
    """
    before = stacked([update.after for update in old])
    after = stacked([update.after for update in new])
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
    return index_of(int(sample[number]), part.shape)


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
