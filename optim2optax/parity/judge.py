"""The judge: whether two runs computed the same function.

float64 decides. There, rounding stays thirteen digits below what a parameter moves, while the
mildest real mistake (beta2 off by 1e-7, epsilon off by a tenth) shows at the seventh; in float32
the two overlap, so float32 is reported and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.exercised import (
    Evidence,
    LeafTrajectories,
    named,
    remarks,
    why_nothing_is_proven,
)
from optim2optax.parity.movement import moved_by_rounding, movements

PyTree: TypeAlias = Any

REPLAY_GATE = 1e-11
"""Error over movement below which two sides that got the same gradients are the same function."""

CLOSED_LOOP_GATE = 1e-7
"""The same where each side computes its own gradients.

There rounding feeds back, to about 4e-9 in 200 steps.
"""

UNKNOWN = Evidence()
"""Nothing is known but the values."""

_TINY = float(np.finfo(np.float64).tiny)


class Verdict(str, Enum):
    """The result of a comparison."""

    IDENTICAL = "identical"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    NOTHING_PROVEN = "nothing_proven"


@dataclass(frozen=True)
class Difference:
    """The place where two trajectories first differ.

    `step` counts from 0, `leaf` is a path such as `Dense_0/kernel`. `ulp` is the distance in units
    of the last place of float64, None if one of the values is not finite. `link` names the part of
    the transformation that departs, such as `optax.scale_by_adam(…)`, if it was looked for and
    found.
    """

    step: int
    leaf: str
    index: tuple[int, ...]
    before: float
    after: float
    ulp: int | None = None
    link: str | None = None

    def __str__(self) -> str:
        place = f"{self.leaf}[{', '.join(map(str, self.index))}]" if self.index else self.leaf
        return f"step {self.step}, {place}: {self.before!r} before, {self.after!r} after"


@dataclass(frozen=True)
class LeafError:
    """The largest error over movement of one leaf, and whether the old side stayed finite."""

    leaf: str
    shape: tuple[int, ...]
    error: float
    finite: bool = True


@dataclass(frozen=True)
class Comparison:
    """The verdict, and the figures behind it.

    `error` is the largest float64 error over movement of any leaf and step. `drift` is the same
    figure in the parameters' own precision, as information, or None if it was not measured. If
    the verdict is "different", `first_difference` is set. `leaves` has the figures of each leaf,
    `error_by_step` and `drift_by_step` the largest one of any leaf for each step. `remarks` are
    sentences on what the run did not exercise; if the verdict is "nothing_proven", the first says
    why. `gate` is the error over movement from which on two sides are different.
    """

    verdict: Verdict
    error: float
    steps: int
    drift: float | None = None
    first_difference: Difference | None = None
    leaves: tuple[LeafError, ...] = ()
    error_by_step: tuple[float, ...] = ()
    drift_by_step: tuple[float, ...] = ()
    remarks: tuple[str, ...] = ()
    gate: float = REPLAY_GATE

    def __str__(self) -> str:
        drift = "" if self.drift is None else f", float32 drift {self.drift:.1e}"
        where = "" if self.first_difference is None else f"; first at {self.first_difference}"
        verdict = self.verdict.value.replace("_", " ")
        figures = f"error over movement {self.error:.1e}{drift}{where}"
        return "\n".join((f"{verdict} after {self.steps} steps: {figures}", *self.remarks))


def compare_trajectories(
    before: Sequence[PyTree],
    after: Sequence[PyTree],
    start: PyTree = None,
    closed_loop: bool = False,
    evidence: Evidence = UNKNOWN,
    gate: float | None = None,
) -> Comparison:
    """Judge two runs by their values after each step, such as their parameters.

    Leaves correspond by path, so a `dict` may stand against a `FrozenDict`. An error counts in
    relation to how far its leaf moves in the whole run on the old side. NaN at the same place on
    both sides is equal.

    Args:
        before: one tree of arrays per step, of the old side.
        after: the same of the new side.
        start: the values of `before` ahead of its first step; None takes the first element.
        closed_loop: whether each side computed its own gradients. Then CLOSED_LOOP_GATE applies
            instead of REPLAY_GATE, and a leaf that rounding alone moves counts as moving like the
            leaves beside it: the bias ahead of a BatchNorm has no gradient but rounding, which
            Adam blows up, while its kernel moves for a reason.
        evidence: what is known of the run beside its values.
        gate: what applies instead of either gate.

    Returns:
        The comparison.

    Raises:
        ValueError: if the two runs do not have the same number of steps, leaves and shapes.
    """
    if len(before) != len(after):
        raise ValueError(f"the old side made {len(before)} steps, the new side {len(after)}")
    first = before[0] if before and start is None else start
    return judge(_stack(before), _stack(after), leaves_by_path(first), closed_loop, evidence, gate)


def judge(
    before: LeafTrajectories,
    after: LeafTrajectories,
    start: LeafTrajectories,
    closed_loop: bool = False,
    evidence: Evidence = UNKNOWN,
    gate: float | None = None,
) -> Comparison:
    """Judge as `compare_trajectories` does, with each leaf's steps stacked already."""
    _check_correspondence(before, after, start)
    scales = movements(before, start, REPLAY_GATE)
    lent = moved_by_rounding(before, start, evidence.rounding) if closed_loop else {}
    # A leaf that rounding alone moves is judged by the movement of the leaves beside it.
    for leaf, beside in lent.items():
        scales[leaf] = max(scales[leaf], beside)
    ratios = {leaf: _error_over(scales[leaf], before[leaf], after[leaf]) for leaf in before}
    errors = {leaf: float(ratio.max(initial=0.0)) for leaf, ratio in ratios.items()}
    error = max(errors.values(), default=0.0)
    gate = gate or (CLOSED_LOOP_GATE if closed_loop else REPLAY_GATE)
    # A difference is one even in a run that otherwise would prove nothing.
    unproven = why_nothing_is_proven(before, start, evidence)
    if error >= gate:
        verdict, sentences = Verdict.DIFFERENT, []
    elif unproven is not None:
        verdict, sentences = Verdict.NOTHING_PROVEN, [unproven]
    else:
        same = all(same_bits(before[leaf], after[leaf]) for leaf in before)
        verdict = Verdict.IDENTICAL if same else Verdict.EQUIVALENT
        sentences = [*remarks(before, start, evidence)]
        sentences += _on_rounding([leaf for leaf in lent if ratios[leaf].any()])
    leaves = []
    for leaf, values in before.items():
        finite = bool(np.isfinite(values).all())
        leaves.append(LeafError(leaf, values.shape[1:], errors[leaf], finite))
    by_step = zip(*map(_per_step, ratios.values()), strict=True)
    return Comparison(
        verdict,
        error,
        steps=len(next(iter(before.values()), ())),
        first_difference=_first(ratios, before, after, gate) if error >= gate else None,
        leaves=tuple(leaves),
        error_by_step=tuple(map(max, by_step)),
        remarks=tuple(sentences),
        gate=gate,
    )


def _on_rounding(leaves: Sequence[str]) -> list[str]:
    """The remark on leaves that rounding alone moves, if there are any."""
    if not leaves:
        return []
    they_are, them = ("it is", "it") if len(leaves) == 1 else ("they are", "them")
    return [
        f"Rounding alone moves {named(leaves)}, so {they_are} judged by the leaves beside {them}."
    ]


def finite_on_one_side(before: LeafTrajectories, after: LeafTrajectories) -> Difference | None:
    """The first value that is finite on one side alone, if there is one."""
    # 1.0 where one side alone is finite, so that any such value is beyond a gate of 1.
    apart: dict[str, NDArray[np.float64]] = {}
    for leaf, values in before.items():
        finite = np.isfinite(values.astype(np.float64))
        other = np.isfinite(after[leaf].astype(np.float64))
        apart[leaf] = (finite != other).astype(np.float64)
    if not any(found.any() for found in apart.values()):
        return None
    return _first(apart, before, after, 1.0)


def _check_correspondence(
    before: LeafTrajectories, after: LeafTrajectories, start: LeafTrajectories
) -> None:
    """Raise ValueError if the two sides do not have the same leaves and shapes."""
    alone = (before.keys() ^ after.keys()) | (before.keys() ^ start.keys())
    if alone:
        raise ValueError(f"only one of the two sides has {', '.join(sorted(alone))}")
    for leaf, values in before.items():
        if values.shape != after[leaf].shape:
            raise ValueError(
                f"{leaf} has shape {values.shape[1:]} before and {after[leaf].shape[1:]} after"
            )


def _error_over(scale: float, before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.float64]:
    """The distance of each element at each step over a scale.

    It is 0 where both are NaN, and infinite where one is.
    """
    if same_bits(before, after):
        return np.zeros(before.shape)
    p = before.astype(np.float64)
    q = after.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(p - q)
        # The usual case, without the passes over the arrays that NaN and infinities need.
        if np.isfinite(distance.max(initial=0.0)):
            return distance / max(scale, _TINY)
        error = np.nan_to_num(distance, nan=np.inf, posinf=np.inf) / max(scale, _TINY)
    # Infinity minus infinity is NaN, but the two are equal.
    return np.where((p == q) | (np.isnan(p) & np.isnan(q)), 0.0, error)


def same_bits(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Whether two arrays of one type hold the same bits."""
    return before.dtype == after.dtype and before.tobytes() == after.tobytes()


def _first(
    ratios: LeafTrajectories, before: LeafTrajectories, after: LeafTrajectories, gate: float
) -> Difference:
    """The first step at which any leaf is beyond the gate, and there the worst element."""
    first_steps: dict[str, int] = {}
    for leaf, ratio in ratios.items():
        if ratio.max(initial=0.0) >= gate:
            first_steps[leaf] = int(np.argmax(np.asarray(_per_step(ratio)) >= gate))
    step = min(first_steps.values())
    leaves = [leaf for leaf, first in first_steps.items() if first == step]
    leaf = max(leaves, key=lambda leaf: float(ratios[leaf][step].max()))
    worst = np.unravel_index(int(np.argmax(ratios[leaf][step])), ratios[leaf].shape[1:])
    index = tuple(map(int, worst))
    p = float(before[leaf][step][index])
    q = float(after[leaf][step][index])
    return Difference(step, leaf, index, p, q, _ulp_distance(p, q))


def _ulp_distance(p: float, q: float) -> int | None:
    """How many float64 numbers lie between two."""
    if not (np.isfinite(p) and np.isfinite(q)):
        return None
    return abs(_rank(p) - _rank(q))


def _rank(value: float) -> int:
    """The place of a float64 number in the order of all, from 0 for zero."""
    # Their bits, read as whole numbers, ascend with the numbers but for the sign, which is a bit.
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else -(bits & (2**63 - 1))


def _per_step(values: NDArray[Any]) -> list[float]:
    """The largest element of each step."""
    per_step: list[float] = values.reshape(len(values), -1).max(axis=1, initial=0.0).tolist()
    return per_step


def _stack(trees: Sequence[PyTree]) -> LeafTrajectories:
    """The leaves of the trees of all steps, each stacked along a leading axis."""
    steps = [leaves_by_path(tree) for tree in trees]
    if not steps:
        return {}
    first = steps[0]
    if any(leaves.keys() != first.keys() for leaves in steps):
        raise ValueError("the steps of one side do not all have the same leaves")
    return {leaf: np.stack([leaves[leaf] for leaves in steps]) for leaf in first}


def leaves_by_path(tree: PyTree) -> dict[str, NDArray[Any]]:
    """The leaves of a tree by paths such as `Dense_0/kernel`.

    The paths are the same for every kind of container.
    """
    paths_and_leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {name_of(path): np.asarray(leaf) for path, leaf in paths_and_leaves}


def name_of(path: Sequence[Any]) -> str:
    """A path of JAX as people read it."""
    return "/".join(map(_name, path))


def _name(key: Any) -> str:
    """One key of a path: of a dict, an attribute or a sequence."""
    fields = (field for field in ("key", "name", "idx") if hasattr(key, field))
    return str(getattr(key, next(fields)))
