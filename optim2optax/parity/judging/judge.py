"""The judge: whether two runs computed the same function.

float64 decides. There, rounding stays thirteen digits below what a parameter moves, while the
mildest real mistake (beta2 off by 1e-7, epsilon off by a tenth) shows at the seventh; in float32
the two overlap, so float32 is reported and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.judging.comparison import (
    CLOSED_LOOP_GATE,
    REPLAY_GATE,
    Comparison,
    Difference,
    LeafError,
    Verdict,
)
from optim2optax.parity.judging.exercised import (
    Evidence,
    named,
    remarks,
    why_nothing_is_proven,
)
from optim2optax.parity.judging.movement import (
    LeafTrajectories,
    PyTree,
    largest_per_step,
    leaves_by_path,
    moved_by_rounding,
    movements,
    same_bits,
    stacked,
)

UNKNOWN = Evidence()
"""Nothing is known but the values."""

INTEGERS = "iu"
_TINY = float(np.finfo(np.float64).tiny)


def compare_trajectories(
    before: Sequence[PyTree],
    after: Sequence[PyTree],
    start: PyTree = None,
    closed_loop: bool = False,
    evidence: Evidence = UNKNOWN,
    gate: float | None = None,
) -> Comparison:
    """Judge two runs, as `judge` does, by a tree of arrays for each step of the old and the new.

    `start` are the values of `before` ahead of its first step; None takes the first element.
    """
    if len(before) != len(after):
        raise ValueError(
            f"the old side made {len(before)} steps, the new side {len(after)}"
        )
    first = before[0] if before and start is None else start
    return judge(
        stacked([*map(leaves_by_path, before)]),
        stacked([*map(leaves_by_path, after)]),
        leaves_by_path(first),
        closed_loop,
        evidence,
        gate,
    )


def judge(
    before: LeafTrajectories,
    after: LeafTrajectories,
    start: LeafTrajectories,
    closed_loop: bool = False,
    evidence: Evidence = UNKNOWN,
    gate: float | None = None,
) -> Comparison:
    """Judge two runs by their values after each step, such as their parameters.

    Leaves correspond by path, so a `dict` may stand against a `FrozenDict`. An error counts in
    relation to how far its leaf moves in the whole run on the old side. NaN at the same place on
    both sides is equal.

    Args:
        before: the leaves of the old side, with a leading axis of steps.
        after: the same of the new side.
        start: the leaves of `before` ahead of its first step.
        closed_loop: whether each side computed its own gradients. Then CLOSED_LOOP_GATE applies
            instead of REPLAY_GATE, and a leaf that rounding alone moves counts as moving like the
            leaves beside it.
        evidence: what is known of the run beside its values.
        gate: what applies instead of either gate.

    Raises:
        ValueError: if the two runs do not have the same number of steps, leaves and shapes.
    """
    _check_correspondence(before, after, start)
    before, after, start = _real(before, after, start)
    scales = movements(before, start, REPLAY_GATE)
    lent = moved_by_rounding(before, start, evidence.rounding) if closed_loop else {}
    # A leaf that rounding alone moves is judged by the movement of the leaves beside it.
    for leaf, beside in lent.items():
        scales[leaf] = max(scales[leaf], beside)
    ratios: dict[str, NDArray[np.float64]] = {}
    errors: dict[str, float] = {}
    for leaf, values in before.items():
        ratios[leaf] = error_over(scales[leaf], values, after[leaf])
        errors[leaf] = float(ratios[leaf].max(initial=0.0))
    error = max(errors.values(), default=0.0)
    if gate is None:
        gate = CLOSED_LOOP_GATE if closed_loop else REPLAY_GATE
    first = first_beyond(ratios, before, after, gate) if error >= gate else None
    # A difference is one even in a run that otherwise would prove nothing.
    unproven = why_nothing_is_proven(before, start, evidence)
    if first is not None:
        verdict = Verdict.DIFFERENT
        sentences: list[str] = []
    elif unproven is not None:
        verdict = Verdict.NOTHING_PROVEN
        sentences = [unproven]
    else:
        same = all(same_bits(before[leaf], after[leaf]) for leaf in before)
        verdict = Verdict.IDENTICAL if same else Verdict.EQUIVALENT
        sentences = [*remarks(before, start, evidence)]
        sentences += _on_rounding([leaf for leaf in lent if ratios[leaf].any()])
    by_step = zip(*map(largest_per_step, ratios.values()), strict=True)
    return Comparison(
        verdict,
        error,
        steps=len(next(iter(before.values()), ())),
        first_difference=first,
        leaves=tuple(
            LeafError(
                leaf, values.shape[1:], errors[leaf], bool(np.isfinite(values).all())
            )
            for leaf, values in before.items()
        ),
        error_by_step=tuple(map(max, by_step)),
        remarks=tuple(sentences),
        gate=gate,
    )


def judge_states(
    pairs: Iterable[tuple[str, Sequence[NDArray[Any]], Sequence[NDArray[Any]], int]],
    closed_loop: bool,
    evidence: Evidence,
    gate: float | None = None,
) -> Comparison | None:
    """Judge what optimizers keep beside their parameters; None if nothing corresponds.

    `pairs` are places in the new state, each with its values in all steps on both sides, and the
    sign of those of the old side.
    """
    before: dict[str, NDArray[Any]] = {}
    after: dict[str, NDArray[Any]] = {}
    for leaf, old, new, sign in pairs:
        # A leaf may be replaced by one of another shape in the middle of a run.
        shapes = {values.shape for values in (*old, *new)}
        if not len(old) == len(new) > 0 or len(shapes) > 1:
            continue
        stacked = np.stack(old)
        before[leaf] = stacked if sign > 0 else np.negative(stacked)
        after[leaf] = np.stack(new)
        # A count may be int64 on one side, as `jnp.int32` means that in float64.
        if stacked.dtype.kind in INTEGERS and after[leaf].dtype.kind in INTEGERS:
            after[leaf] = after[leaf].astype(stacked.dtype)
    if not before:
        return None
    # Moments begin at zero. They move wherever parameters do, which are compared themselves.
    start = {leaf: np.zeros_like(values[0]) for leaf, values in before.items()}
    moved = replace(evidence, moved=True)
    return judge(before, after, start, closed_loop, moved, gate)


def _on_rounding(leaves: Sequence[str]) -> list[str]:
    """The remark on leaves that rounding alone moves, if there are any."""
    if not leaves:
        return []
    they_are, them = ("it is", "it") if len(leaves) == 1 else ("they are", "them")
    return [
        f"Rounding alone moves {named(leaves)}, so {they_are} judged by the leaves beside {them}."
    ]


def _check_correspondence(
    before: LeafTrajectories, after: LeafTrajectories, start: LeafTrajectories
) -> None:
    """Raise ValueError if the two sides do not have the same leaves and shapes."""
    alone = (before.keys() ^ after.keys()) | (before.keys() ^ start.keys())
    if alone:
        raise ValueError(f"only one of the two sides has {', '.join(sorted(alone))}")
    for leaf, values in before.items():
        other = after[leaf]
        # The first axis is that of steps.
        if values.shape != other.shape:
            raise ValueError(
                f"{leaf} has shape {values.shape[1:]} before and {other.shape[1:]} after"
            )


def _real(*sides: LeafTrajectories) -> list[LeafTrajectories]:
    """Leaves that are complex on any side as two real numbers each, along a last axis."""
    items = chain.from_iterable(side.items() for side in sides)
    found = {leaf for leaf, values in items if np.iscomplexobj(values)}

    def real(leaf: str, values: NDArray[Any]) -> NDArray[Any]:
        parts = [values.real, values.imag]
        return np.stack(parts, axis=-1) if leaf in found else values

    return [{leaf: real(leaf, side[leaf]) for leaf in side} for side in sides]


def error_over(
    scale: float, before: NDArray[Any], after: NDArray[Any]
) -> NDArray[np.float64]:
    """The distance of each element at each step over a scale.

    It is 0 where both are NaN, and infinite where one is.
    """
    if same_bits(before, after):
        return np.zeros(before.shape)
    p = before.astype(np.float64)
    q = after.astype(np.float64)
    divisor = max(scale, _TINY)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(p - q)
        # The usual case, without the passes over the arrays that NaN and infinities need.
        if np.isfinite(distance.max(initial=0.0)):
            return np.asarray(distance / divisor)
        error = np.nan_to_num(distance, nan=np.inf, posinf=np.inf) / divisor
    # Infinity minus infinity is NaN, but the two are equal.
    are_equal = (p == q) | (np.isnan(p) & np.isnan(q))
    return np.where(are_equal, 0.0, error)


def first_far_apart(
    before: LeafTrajectories,
    after: LeafTrajectories,
    start: LeafTrajectories,
    gate: float = np.inf,
) -> Difference | None:
    """The first value that is finite on one side alone, or beyond a gate, if there is one.

    The gate is in relation to the movement of the element, or to its value.
    """
    # 1.0 where the two are apart, so that any such value is beyond a gate of 1.
    apart: dict[str, NDArray[np.float64]] = {}
    for leaf, values in before.items():
        # NumPy has no `isfinite` for bfloat16.
        p = values.astype(np.float64)
        q = after[leaf].astype(np.float64)
        are_apart = np.isfinite(p) != np.isfinite(q)
        # Infinity minus infinity, and what overflows, is none of both.
        with np.errstate(all="ignore"):
            reached = np.maximum(np.abs(p - start[leaf]), np.abs(p))
            scale = np.max(reached, axis=0, initial=0.0, where=np.isfinite(reached))
            are_far = np.isfinite(p) & np.isfinite(q) & (np.abs(p - q) > gate * scale)
        apart[leaf] = (are_apart | are_far).astype(np.float64)
    if not any(found.any() for found in apart.values()):
        return None
    return first_beyond(apart, before, after, gate=1.0)


def first_beyond(
    ratios: LeafTrajectories,
    before: LeafTrajectories,
    after: LeafTrajectories,
    gate: float,
) -> Difference:
    """The first step at which any leaf is beyond the gate, and there the worst element."""
    first_steps: dict[str, int] = {}
    for leaf, ratio in ratios.items():
        is_beyond = np.asarray(largest_per_step(ratio)) >= gate
        if is_beyond.any():
            first_steps[leaf] = int(np.argmax(is_beyond))
    step = min(first_steps.values())
    leaves = [leaf for leaf, first in first_steps.items() if first == step]
    leaf = max(leaves, key=lambda leaf: float(ratios[leaf][step].max()))
    index = index_of_largest(ratios[leaf][step])
    p = float(before[leaf][step][index])
    q = float(after[leaf][step][index])
    return Difference(step, leaf, index, p, q, _ulp_distance(p, q))


def index_of_largest(values: NDArray[Any]) -> tuple[int, ...]:
    """The index of the largest element."""
    place = np.unravel_index(int(np.argmax(values)), values.shape)
    return tuple(int(axis) for axis in place)


def _ulp_distance(p: float, q: float) -> int | None:
    """How many float64 numbers lie between two."""
    if not (np.isfinite(p) and np.isfinite(q)):
        return None
    return abs(_rank(p) - _rank(q))


def _rank(value: float) -> int:
    """The place of a float64 number in the order of all, from 0 for zero."""
    # Their bits, read as whole numbers, ascend with the numbers but for the sign, which is a bit.
    bits = int(np.float64(value).view(np.int64))
    without_sign = bits & (2**63 - 1)
    return bits if bits >= 0 else -without_sign
