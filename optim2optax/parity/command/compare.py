"""Whether two sides of a command applied the same updates, and kept the same states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from numpy.typing import NDArray

from optim2optax.parity.command.parts import (
    judged_by_parts,
    one_side_alone,
    rounding_alone,
)
from optim2optax.parity.command.updates import (
    Correspondence,
    Kind,
    Parts,
    Update,
    by_kind,
    by_step,
    first_of_each_step,
    in_order,
)
from optim2optax.parity.judging.comparison import (
    REPLAY_GATE,
    Comparison,
    Verdict,
)
from optim2optax.parity.judging.exercised import FEWEST_STEPS, Evidence
from optim2optax.parity.judging.judge import judge_states

NAMED = 3
"""The number of leaves that a message names."""


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
    compared = [
        _compare(updates, after[kind], gate) for kind, updates in before.items()
    ]
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
    return judged_by_parts(
        start, before[:steps], after[:steps], REPLAY_GATE, closed_loop=False
    )


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
