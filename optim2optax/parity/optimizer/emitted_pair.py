"""Whether an optimizer that `rewrite` emits is the one that it replaces, and which part departs.

Both source texts are evaluated, and what they give is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from flax import traverse_util
from numpy.typing import NDArray

from codemods.model import EmittedOptimizer
from optim2optax.parity.judging.comparison import Comparison, Verdict, severity
from optim2optax.parity.judging.movement import LeafTrajectories, largest
from optim2optax.parity.optimizer.coverage import (
    horizon,
    probe_for,
    rate,
    sizes,
)
from optim2optax.parity.optimizer.evaluating import UnevaluableError, evaluate, rates
from optim2optax.parity.optimizer.mistakes import mistakes
from optim2optax.parity.optimizer.same_function import Pair, compare_probed
from optim2optax.parity.optimizer.texts import TRAVERSAL, Counterpart
from optim2optax.parity.optimizer.variants import variants


def compare_variants(
    emitted: EmittedOptimizer, steps: int = 120, seed: int = 0
) -> Comparison:
    """The comparison of old and new source texts that departs most, with the link that departs.

    There is a variant for each choice that the program may make. Names of the program get sampled
    values. Where the learning rate is set at each step, both sides get one that always changes.

    Raises:
        UnevaluableError: if one of the texts cannot be evaluated outside of its program.
    """
    if isinstance(emitted, Counterpart) and emitted.reason:
        raise UnevaluableError(emitted.reason)
    if not emitted.optax_expression:
        raise UnevaluableError("there is no new expression")
    found: list[tuple[Comparison, EmittedOptimizer]] = []
    for variant in variants(emitted):
        # Without its place, the same text elsewhere is the same key of the cache.
        text_alone = replace(variant, name="", line=0, before="")
        comparison = _compared(text_alone, steps, seed)
        found.append((comparison, text_alone))
        if comparison.verdict is Verdict.DIFFERENT:
            break
    comparison, chosen = max(found, key=lambda pair: severity(pair[0]))
    remarks = emitted.remarks if isinstance(emitted, Counterpart) else ()
    comparison = replace(comparison, remarks=(*comparison.remarks, *remarks))
    return _with_link(comparison, chosen, seed)


@cache
def _compared(emitted: EmittedOptimizer, steps: int, seed: int) -> Comparison:
    """Compare one variant; the same texts are compared once."""
    old, new = evaluate(emitted)
    overrides = rates(emitted, new)
    params = _of_one_group(probe_for(emitted, seed), old)
    return compare_probed(
        old,
        new,
        steps,
        seed,
        params,
        overrides,
        horizon=horizon(emitted, steps),
        sizes=sizes(emitted),
    )


def _of_one_group(params: Any, old: Any) -> Any:
    """Parameters without those that several groups of a MultiOptimizer select.

    The old side raises an error for these, so no program has any.
    """
    filters = [
        traversal._filter_fn
        for traversal in getattr(old, "traversals", ())
        if isinstance(traversal, TRAVERSAL)
    ]
    if len(filters) < 2:
        return params
    kept = {}
    flat = traverse_util.flatten_dict(params, sep="/")  # type: ignore[no-untyped-call]
    for path, leaf in flat.items():
        selecting = [one for one in filters if one(f"/{path}", leaf)]
        if len(selecting) < 2:
            kept[path] = leaf
    return traverse_util.unflatten_dict(kept, sep="/")  # type: ignore[no-untyped-call]


AGREE = 1e-9
"""Movements that differ by less than this, in relation to the larger one, agree."""

STEPS = 3
LARGE, USUAL, TINY = 1e4, 1.0, 1e-7


def _with_link(
    comparison: Comparison, emitted: EmittedOptimizer, seed: int
) -> Comparison:
    """The comparison with the link that departs in its first difference, if there is one.

    It is decay, rate, clip, epsilon or moments.
    """
    first = comparison.first_difference
    if first is None or first.link is not None:
        return comparison
    old, new = evaluate(emitted)
    random = np.random.default_rng(seed)
    # Few and small leaves suffice to see a link.
    params = {"kernel": random.normal(size=(4, 3)), "bias": random.normal(size=3)}
    given = rates(emitted, new)
    few = None if given is None else np.full(STEPS, 0.02)
    if given not in (None, rate):
        few = np.asarray([given(step) for step in range(STEPS)])

    def movements(pair: Pair, scale: float) -> tuple[NDArray[Any], NDArray[Any]]:
        def gradients_of(leaf: NDArray[Any]) -> NDArray[Any]:
            # They keep the sign of the leaf, so that moments do not cancel.
            magnitudes = 0.5 + random.random((STEPS, *leaf.shape))
            signed: NDArray[Any] = scale * magnitudes * np.sign(leaf)
            return signed

        gradients = jax.tree_util.tree_map(gradients_of, params)
        before, after, start = pair.replay(params, gradients, few)
        return _movement(start, before), _movement(start, after)

    def agrees(wrong: EmittedOptimizer) -> bool:
        """Whether another optimizer moves parameters as the new one does."""
        try:
            _, other = evaluate(wrong)
        except UnevaluableError:
            return False
        both = Pair(new, other)
        return all(_agree(*movements(both, scale)) for scale in (USUAL, TINY))

    of_sides = partial(movements, Pair(old, new))
    link = _link(of_sides)
    cause = next((words for words, one in mistakes(emitted) if agrees(one)), None)
    ratio = f"{np.median(_ratios(*of_sides(USUAL))):.4g}" if link == "rate" else "1"
    if cause is None and ratio != "1":
        cause = f"each update is {ratio} times as large"
    named = replace(first, link=link, cause=cause)
    return replace(comparison, first_difference=named)


def _link(
    movements: Callable[[float], tuple[NDArray[Any], NDArray[Any]]],
) -> str | None:
    """The link that departs, by what gradients of a scale move on the old side and on the new."""
    old, new = movements(USUAL)
    if _is_scaled(old, new) and not _agree(old, new):
        return "rate"
    # Without gradients, nothing but decay moves a leaf.
    if not _agree(*movements(0.0)):
        return "decay"
    if _agree(old, new):
        if not _agree(*movements(LARGE)):
            return "clip"
        return None if _agree(*movements(TINY)) else "epsilon"
    if _apart(*movements(TINY)) > 10 * _apart(old, new):
        return "epsilon"
    # In the first step, moments and their correction cancel.
    return "moments" if _agree(old[:1], new[:1]) else "moments or bias correction"


def _is_scaled(old: NDArray[Any], new: NDArray[Any]) -> bool:
    """Whether all movements of the new side are those of the old one times about one factor."""
    ratios = _ratios(old, new)
    if not ratios.size:
        return False
    # Where parameters decay, a movement that is larger makes the next one smaller.
    spread = float(np.ptp(ratios))
    return bool(spread < 0.01 * abs(ratios[0] - 1))


def _ratios(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """How many times as far the new side moves as the old one, where that moves."""
    moved = old != 0
    return np.asarray(new[moved] / old[moved])


def _movement(start: LeafTrajectories, steps: LeafTrajectories) -> NDArray[Any]:
    """How far each element got from its start, by step, over all leaves."""
    moved = [values - start[leaf] for leaf, values in steps.items()]
    return np.concatenate([rows.reshape(len(rows), -1) for rows in moved], axis=1)


def _agree(old: NDArray[Any], new: NDArray[Any]) -> bool:
    return _apart(old, new) < AGREE


def _apart(old: NDArray[Any], new: NDArray[Any]) -> float:
    """The largest difference of two movements, in relation to the larger one."""
    scale = max(largest(old), largest(new))
    return largest(old - new) / scale if scale else 0.0
