"""Whether two sides applied the same updates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.exercised import FEWEST_STEPS, Evidence
from optim2optax.parity.judge import REPLAY_GATE, Comparison, Difference, LeafError, Verdict, judge
from optim2optax.parity.movement import gradients_of_rounding
from optim2optax.parity.sketch import Part, block, positions

Parts: TypeAlias = dict[Part, NDArray[Any]]
Kind: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
Correspondence: TypeAlias = tuple[str, str, int]
"""A place in the new state, the place in the old one that it corresponds to, and the sign."""

DIGITS = 6
"""The digits to which values are compared when members are put in order.

More would let rounding decide.
"""


@dataclass(frozen=True)
class Update:
    """One step of one optimizer: its count, if that is known, and the parameters after it.

    Only the first update of a kind in a process has the parameters `before` it. An update that
    moved nothing is idle. Values that a program hands over itself, under the name in `observed`,
    are an update as well; its step is their number among those of that name. `state` is what the
    optimizer keeps beside the parameters, `sizes` how large the gradient of each leaf is, if that
    is known.
    """

    step: int | None
    before: Parts
    after: Parts
    idle: bool = False
    observed: str = ""
    state: Parts = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """What distinguishes the updates of different optimizers: the leaves and their shapes."""
        if self.observed:
            return ((f"observed {self.observed}", ()),)
        return tuple(sorted({(part.leaf, part.shape) for part in self.after}))


class DifferentParametersError(ValueError):
    """One side steps parameters that the other does not have."""


def compare_updates(
    old: Sequence[Update], new: Sequence[Update], gate: float | None = None
) -> Comparison:
    """Judge two recordings.

    Updates correspond by their leaves, their count if that is known, and the order in which they
    came. Where one side alone takes a step, that is a difference, unless nothing moves in it.
    `gate` replaces that of a closed loop.

    Raises:
        DifferentParametersError: if the two sides step different parameters.
    """
    before = by_kind(old)
    after = by_kind(new)
    if before.keys() != after.keys():
        raise DifferentParametersError(_alone(before.keys(), after.keys()))
    compared = [_compare(updates, after[kind], gate) for kind, updates in before.items()]
    different = [found for found in compared if found.first_difference is not None]
    if different:
        return min(different, key=_step_of_difference)
    unproven = [found for found in compared if found.verdict is Verdict.NOTHING_PROVEN]
    # An optimizer that never moves does not hide what the others prove.
    proven = [found for found in compared if found not in unproven]
    worst = max(proven or unproven, key=lambda found: found.error)
    notes: list[str] = []
    for found in unproven:
        if found is not worst:
            notes += [f"Of {found.leaves[0].leaf}: {remark}" for remark in found.remarks]
    return replace(worst, remarks=(*worst.remarks, *notes))


def _step_of_difference(found: Comparison) -> int:
    return found.first_difference.step if found.first_difference else 0


def _alone(before: Iterable[Kind], after: Iterable[Kind]) -> str:
    """The message on parameters that one side alone steps."""
    old = set(chain.from_iterable(before))
    new = set(chain.from_iterable(after))
    sides = []
    for side, alone in (("old", old - new), ("new", new - old)):
        if alone:
            leaves = [f"{leaf} of shape {shape}" for leaf, shape in sorted(alone)[:3]]
            sides.append(f"only the {side} side steps {', '.join(leaves)}")
    what = "; ".join(sides) or "the same leaves in other groups"
    return f"the two sides step different parameters: {what}"


def by_kind(updates: Sequence[Update]) -> dict[Kind, list[Update]]:
    """The updates of each kind, in order."""
    kinds: dict[Kind, list[Update]] = {}
    for update in updates:
        kinds.setdefault(update.kind, []).append(update)
    return kinds


def _compare(old: list[Update], new: list[Update], gate: float | None) -> Comparison:
    """Judge the updates of one kind."""
    updates, others = _in_order(old, new)
    start = _start(old)
    # A step that one side alone takes is looked at only if the steps before it agree.
    number = min(len(updates), len(others))
    if number:
        found = _judged(start, updates[:number], others[:number], gate)
        if found.first_difference is not None or len(updates) == len(others):
            return found
    return _one_side_alone(updates, others, number)


def _start(updates: Sequence[Update]) -> Parts:
    """The parameters ahead of the first step, if they are known, else those after it."""
    for update in updates:
        if update.before:
            return update.before
    return updates[0].after


def _in_order(old: Sequence[Update], new: Sequence[Update]) -> tuple[list[Update], list[Update]]:
    """The updates of both sides as they correspond.

    They correspond by their steps, or else in the order in which they came, without idle ones.
    """
    if all(update.step is not None for update in (*old, *new)):
        updates = _by_step(old)
        others = _by_step(new)
        old_steps = [update.step for update in updates]
        new_steps = [update.step for update in others]
        if old_steps == new_steps:
            return updates, others
        # One side may count steps in which nothing moves, as with `optax.MultiSteps`.
        return _moving(updates), _moving(others)
    return _moving(_once(old, counted=False)), _moving(_once(new, counted=False))


def _moving(updates: Sequence[Update]) -> list[Update]:
    return [update for update in updates if not update.idle]


def _once(updates: Iterable[Update], counted: bool) -> list[Update]:
    """The updates without the copies that further devices or processes record.

    With `counted`, updates of different steps are no copies of each other.
    """
    found: dict[tuple[int | None, bytes], Update] = {}
    for update in updates:
        # Devices add in different orders, so that sums of the same values may differ.
        exact = sorted(_exact(update.after).items())
        content = b"".join(values.tobytes() for _, values in exact)
        found.setdefault((update.step if counted else None, content), update)
    return list(found.values())


def _by_step(updates: Iterable[Update]) -> list[Update]:
    """The updates by their steps, and those of one step by their values.

    The callbacks of the members of an ensemble may come in any order.
    """
    once = _once(updates, counted=True)
    return sorted(once, key=lambda update: (update.step, _rounded(update.after)))


def _rounded(parts: Parts) -> list[float]:
    """The first values of each part, where different members of an ensemble differ."""
    values: list[float] = []
    for _, part in sorted(parts.items()):
        values += map(float, part.astype(np.float64).flat[:DIGITS])
    return [_shortened(value) for value in values]


def _shortened(value: float) -> float:
    """A number to DIGITS digits; NaN, which has no order, is infinity."""
    if not math.isfinite(value):
        return math.inf
    return float(f"{value:.{DIGITS}g}")


def _exact(parts: Parts) -> Parts:
    """The parts that have the same bits if the parameters have.

    Sums do not, as they depend on the order of addition.
    """
    return {part: values for part, values in parts.items() if part.name != "sums"}


def compare_replays(
    old: Sequence[Update], replays: Sequence[Update], shadow: Sequence[Update] | None = None
) -> Comparison:
    """Judge the replays, on the new side, of the old side's first steps of one kind.

    `shadow` are the same steps as the old side computes them in float64, where it ran in float32.
    """
    start = _start(old)
    before = _by_step(old) if shadow is None else _first_of_each_step(shadow)
    after = _first_of_each_step(replays)
    steps = min(len(before), len(after))
    return _judged(start, before[:steps], after[:steps], REPLAY_GATE, closed_loop=False)


def _first_of_each_step(replays: Sequence[Update]) -> list[Update]:
    """Replays in order; several processes may have done the same."""
    found = {update.step: update for update in reversed(replays)}
    return [found[step] for step in range(len(found))]


def compare_states(
    old: Sequence[Update],
    new: Sequence[Update],
    places: Sequence[Correspondence],
    gate: float | None = None,
) -> Comparison | None:
    """Judge what the optimizers of one kind keep beside their parameters.

    The result is None where nothing corresponds.
    """
    updates, others = _in_order(old, new)
    before: dict[str, NDArray[Any]] = {}
    after: dict[str, NDArray[Any]] = {}
    for place, source, sign in places:
        old_values = _states_at(source, updates)
        new_values = _states_at(place, others)
        shapes = {values.shape for values in (*old_values, *new_values)}
        if old_values and len(old_values) == len(new_values) and len(shapes) == 1:
            before[place] = sign * np.stack(old_values)
            after[place] = np.stack(new_values).astype(before[place].dtype)
    if not before:
        return None
    start = {leaf: np.zeros_like(values[0]) for leaf, values in before.items()}
    evidence = Evidence(FEWEST_STEPS, moved=True, rounding=_rounding([*old, *new]))
    return judge(before, after, start, closed_loop=True, evidence=evidence, gate=gate)


def _states_at(place: str, updates: Sequence[Update]) -> list[NDArray[Any]]:
    """The values at a place of the state, after each update."""
    found: list[NDArray[Any]] = []
    for update in updates:
        found += [values for part, values in update.state.items() if part.leaf == place]
    return found


def _rounding(updates: Iterable[Update]) -> dict[str, bool]:
    """Of each leaf whose gradients are known, whether these are rounding alone."""
    sizes: dict[str, float] = {}
    for update in updates:
        for leaf, size in update.sizes.items():
            sizes[leaf] = max(size, sizes.get(leaf, 0.0))
    return gradients_of_rounding(sizes)


def _judged(
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
    known = _rounding([*old, *new])
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
        exact = _exact(before).items()
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


def _one_side_alone(old: Sequence[Update], new: Sequence[Update], number: int) -> Comparison:
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
