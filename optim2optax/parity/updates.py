"""Whether two sides applied the same updates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
"""To so many digits the values of members are compared when they are put in order, so that rounding does not decide."""


@dataclass(frozen=True)
class Update:
    """One step of one optimizer: its count, if that is known, and the parameters after it.

    Those ahead of it are kept of the first of a kind in a process. An update that moved nothing is idle. What a program hands
    over itself, under the name in `observed`, is kept like an update: which one it is of that name, and the values. `state` is
    what the optimizer keeps beside the parameters, `sizes` how large the gradient of each leaf is, if that is known.
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
        """What tells the updates of different optimizers apart: leaves and shapes. What is observed has a name."""
        leaves = {(part.leaf, part.shape) for part in self.after}
        return tuple(sorted({(f"observed {self.observed}", ())} if self.observed else leaves))


class DifferentParametersError(ValueError):
    """One side steps parameters that the other does not have."""


def compare_updates(
    old: Sequence[Update], new: Sequence[Update], gate: float | None = None
) -> Comparison:
    """Judge two recordings. Updates correspond by their leaves, their count if that is known, and the order in which they came.

    Where one side alone takes a step, that is a difference, unless nothing moves in it. `gate` stands for that of a closed loop.

    Raises:
        DifferentParametersError: if the two sides step different parameters.
    """
    before, after = by_kind(old), by_kind(new)
    if before.keys() != after.keys():
        raise DifferentParametersError(_alone(before.keys(), after.keys()))
    compared = [_compare(updates, after[kind], gate) for kind, updates in before.items()]
    different = [found for found in compared if found.first_difference is not None]
    if different:
        return min(
            different,
            key=lambda found: found.first_difference.step if found.first_difference else 0,
        )
    unproven = [found for found in compared if found.verdict is Verdict.NOTHING_PROVEN]
    worst = max(
        [found for found in compared if found not in unproven] or unproven,
        key=lambda found: found.error,
    )
    told = [
        f"Of {found.leaves[0].leaf}: {remark}"
        for found in unproven
        if found is not worst
        for remark in found.remarks
    ]
    return replace(worst, remarks=(*worst.remarks, *told))


def _alone(before: Iterable[Kind], after: Iterable[Kind]) -> str:
    found = {
        side: {leaf for kind in kinds for leaf in kind}
        for side, kinds in (("old", before), ("new", after))
    }
    sides = []
    for side, others in (("old", "new"), ("new", "old")):
        leaves = sorted(found[side] - found[others])
        if leaves:
            named = ", ".join(f"{leaf} of shape {shape}" for leaf, shape in leaves[:3])
            sides.append(f"only the {side} side steps {named}")
    return f"the two sides step different parameters: {'; '.join(sides) or 'the same leaves in other groups'}"


def by_kind(updates: Sequence[Update]) -> dict[Kind, list[Update]]:
    """The updates of each kind, in order."""
    kinds: dict[Kind, list[Update]] = {}
    for update in updates:
        kinds.setdefault(update.kind, []).append(update)
    return kinds


def _compare(old: list[Update], new: list[Update], gate: float | None) -> Comparison:
    """Judge the updates of one kind."""
    start = next((update.before for update in old if update.before), old[0].after)
    updates, others = _in_order(old, new)
    number = min(len(updates), len(others))
    if number:
        found = _judged(start, updates[:number], others[:number], gate)
        if found.first_difference is not None or len(updates) == len(others):
            return found
    return _one_side_alone(updates, others, number)


def _in_order(old: Sequence[Update], new: Sequence[Update]) -> tuple[list[Update], list[Update]]:
    """The updates as they correspond: by their steps, or else, without those that move nothing, as they came."""
    if all(update.step is not None for update in (*old, *new)):
        updates, others = _by_step(old), _by_step(new)
        if [update.step for update in updates] == [update.step for update in others]:
            return updates, others
        return _moving(updates), _moving(others)
    return _moving(_once(old, counted=False)), _moving(_once(new, counted=False))


def _moving(updates: Sequence[Update]) -> list[Update]:
    return [update for update in updates if not update.idle]


def _once(updates: Iterable[Update], counted: bool) -> list[Update]:
    """The updates, without those that several devices or processes did alike, at the same step if steps are counted."""
    found: dict[tuple[int | None, bytes], Update] = {}
    for update in updates:
        content = b"".join(values.tobytes() for _, values in sorted(_exact(update.after).items()))
        found.setdefault((update.step if counted else None, content), update)
    return list(found.values())


def _by_step(updates: Iterable[Update]) -> list[Update]:
    """The updates by their steps, and those of one step, whose callbacks may come in any order, by what they hold."""
    return sorted(
        _once(updates, counted=True), key=lambda update: (update.step, _rounded(update.after))
    )


def _rounded(parts: Parts) -> list[float]:
    """The first values of each part, where members that are not alike differ."""
    values = [
        float(value)
        for _, part in sorted(parts.items())
        for value in part.astype(np.float64).flat[:DIGITS]
    ]
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else math.inf for value in values]


def _exact(parts: Parts) -> Parts:
    """The parts that are the same bits if the parameters are. Sums depend on the order in which they are taken."""
    return {part: values for part, values in parts.items() if part.name != "sums"}


def compare_replays(
    old: Sequence[Update], replays: Sequence[Update], shadow: Sequence[Update] | None = None
) -> Comparison:
    """Judge what the old side's first steps of one kind become on the new side, replayed.

    `shadow` is what the old side itself makes of these steps in float64, where it ran in float32.
    """
    start = next((update.before for update in old if update.before), old[0].after)
    before, after = (
        _by_step(old) if shadow is None else _first_of_each_step(shadow),
        _first_of_each_step(replays),
    )
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
    """Judge what the optimizers of one kind keep beside their parameters. Gives None where nothing corresponds."""
    updates, others = _in_order(old, new)
    before: dict[str, NDArray[Any]] = {}
    after: dict[str, NDArray[Any]] = {}
    for place, source, sign in places:
        ours = [
            values
            for update in updates
            for part, values in update.state.items()
            if part.leaf == source
        ]
        theirs = [
            values
            for update in others
            for part, values in update.state.items()
            if part.leaf == place
        ]
        if (
            ours
            and len(ours) == len(theirs)
            and len({values.shape for values in (*ours, *theirs)}) == 1
        ):
            before[place] = sign * np.stack(ours)
            after[place] = np.stack(theirs).astype(before[place].dtype)
    if not before:
        return None
    start = {leaf: np.zeros_like(values[0]) for leaf, values in before.items()}
    evidence = Evidence(FEWEST_STEPS, moved=True, rounding=_rounding([*old, *new]))
    return judge(before, after, start, closed_loop=True, evidence=evidence, gate=gate)


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
    """Judge by every element and sum that was kept, each leaf and each kind of sum by its own movement."""
    before, after = _stacked(old), _stacked(new)
    judged = [part for part in before if part.name != "digest"]
    known = _rounding([*old, *new])
    rounding = {_name(part): known[part.leaf] for part in judged if part.leaf in known}
    found = judge(
        {_name(part): before[part] for part in judged},
        {_name(part): after[part] for part in judged},
        {_name(part): start.get(part, np.zeros_like(before[part][0])) for part in judged},
        closed_loop=closed_loop,
        evidence=Evidence(FEWEST_STEPS, moved=True)
        if old[0].observed
        else Evidence(rounding=rounding),
        gate=gate,
    )
    if found.verdict in (Verdict.IDENTICAL, Verdict.EQUIVALENT):
        same = all(
            values.tobytes() == after[part].tobytes() for part, values in _exact(before).items()
        )
        found = replace(found, verdict=Verdict.IDENTICAL if same else Verdict.EQUIVALENT)
    parts = {_name(part): part for part in judged}
    return replace(
        found,
        first_difference=_located(found.first_difference, parts),
        leaves=_leaves(found, parts),
    )


def _stacked(updates: Sequence[Update]) -> Parts:
    return {part: np.stack([update.after[part] for update in updates]) for part in updates[0].after}


def _name(part: Part) -> str:
    """What the judge calls a part: the leaf, or a place of its own below it, so that it shares no movement."""
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
        place = positions(part.leaf, math.prod(part.shape))[number]
        return replace(
            difference, index=tuple(int(index) for index in np.unravel_index(place, part.shape))
        )
    if part.name == "counts":
        what = ("NaN", "inf", "-inf")[number]
        return replace(difference, leaf=f"{part.leaf} (number of {what})", index=())
    first, last = (list(index) for index in block(number, part.shape))
    return replace(difference, leaf=f"{part.leaf} (weighted sum of {first} to {last})", index=())


def _leaves(found: Comparison, parts: dict[str, Part]) -> tuple[LeafError, ...]:
    """The figures of each leaf, of all its parts together."""
    leaves: dict[str, LeafError] = {}
    for error in found.leaves:
        part = parts[error.leaf]
        known = leaves.get(part.leaf, LeafError(part.leaf, part.shape, 0.0))
        leaves[part.leaf] = replace(
            known, error=max(known.error, error.error), finite=known.finite and error.finite
        )
    return tuple(leaves.values())


def _one_side_alone(old: Sequence[Update], new: Sequence[Update], number: int) -> Comparison:
    """A step that one side takes and the other does not: a number stands where there is a value, NaN where there is none."""
    side, alone = ("old", old[number]) if len(old) > number else ("new", new[number])
    part, values = next(iter(alone.after.items()))
    value = float(values.astype(np.float64).flat[0])
    pair = (value, math.nan) if side == "old" else (math.nan, value)
    step = number if alone.step is None else alone.step
    counts = f"the old side took {len(old)} steps of this optimizer, the new side {len(new)}"
    index = (0,) * len(part.shape)
    if part.name == "sample":
        index = tuple(
            int(i)
            for i in np.unravel_index(positions(part.leaf, math.prod(part.shape))[0], part.shape)
        )
    difference = Difference(
        step, part.leaf, index, *pair, link=f"only the {side} side takes this step; {counts}"
    )
    return Comparison(Verdict.DIFFERENT, math.inf, number, first_difference=difference)
