"""A scenario in open loop: gradients of the old side, replayed into transformations of the new one.

The closed loop compares the training loops, in which rounding feeds back. The open loop compares
the optimizers alone, on the very parameters and gradients of the user's own run, by the much
narrower gate of a replay.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from optim2optax.parity.exercised import Evidence
from optim2optax.parity.judge import Comparison, PyTree, judge, leaves_by_path
from optim2optax.parity.movement import gradients_of_rounding
from optim2optax.parity.rates import with_rate
from optim2optax.parity.recorder import params

Kind = tuple[tuple[str, tuple[int, ...]], ...]
"""What distinguishes optimizers: the paths and shapes of their parameters."""


@dataclass(frozen=True)
class Step:
    """A step of an old optimizer: its count, its inputs, and the parameters after it.

    `rate` is NaN if none was given.
    """

    count: int
    before: PyTree
    gradients: PyTree
    rate: float
    after: PyTree


class Tape:
    """The steps of one side, and the transformations that it uses, by the kind of their parameters.

    `complete` says whether states and hyperparameters follow from the steps, `defined` whether
    a definition takes steps without an optimizer. `by_hand` are the updates that a program applies
    itself.
    """

    def __init__(self) -> None:
        self.steps: dict[Kind, list[Step]] = defaultdict(list)
        # Those of one kind by the identity of their functions: one `tx` in several states is one.
        self.transformations: defaultdict[Kind, dict[int, optax.GradientTransformation]]
        self.transformations = defaultdict(dict)
        self.complete = True
        self.by_hand: set[int] = set()
        self.defined = False
        self.widened = False
        self._lock = threading.Lock()

    def keep(self, step: Any, before: Any, gradients: Any, rate: Any, after: Any) -> None:
        """Keep a step."""
        trees = (before, gradients, after)
        before, gradients, after = jax.tree_util.tree_map(np.array, trees)
        found = Step(int(step), before, gradients, float(rate), after)
        with self._lock:
            self.steps[kind_of(before)].append(found)

    def update(self, before: Any, after: Any) -> None:
        """Count an update; nothing can be replayed into it."""
        del before
        leaves = map(np.asarray, jax.tree_util.tree_leaves(after))
        # Several devices make the same update, which counts once.
        content = b"".join(leaf.tobytes() for leaf in leaves)
        with self._lock:
            self.by_hand.add(hash(content))

    def functional(self, step: Any, before: Any, after: Any) -> None:
        """Count a step; without its gradients, nothing can be replayed into it."""
        del step
        self.defined = True
        self.update(before, after)

    def recorded(self) -> dict[Kind, list[Step]]:
        """The steps so far; callbacks may still be coming in."""
        with self._lock:
            return {kind: list(steps) for kind, steps in self.steps.items()}

    def meet(self, state: Any) -> None:
        """Keep the transformation of a train state."""
        # TrainState.create(apply_fn=model.apply, params=params, tx=tx)
        if hasattr(state, "tx"):
            self.transformations[kind_of(params(state))][id(state.tx.update)] = state.tx

    def widen(self) -> None:
        """Note that parameters are in float64 that were to be in float32."""
        self.widened = True

    def lose(self) -> None:
        """Note that states or hyperparameters do not follow from the steps."""
        self.complete = False


def kind_of(tree: PyTree) -> Kind:
    """The kind of some parameters, which may be traced."""
    shapes = jax.tree_util.tree_map(lambda leaf: np.empty(jnp.shape(leaf), np.bool_), tree)
    return tuple((path, leaf.shape) for path, leaf in sorted(leaves_by_path(shapes).items()))


def compare_open_loop(old: Tape, new: Tape) -> Comparison | None:
    """Replay the steps of the old side into the transformations of the new side.

    Returns:
        The comparison of the optimizer that departs most. It is None if the code does not allow
        it: if several optimizers have parameters of one kind, their counts do not go up by one
        from 0, or their states or hyperparameters were set by hand.
    """
    if not old.complete:
        return None
    compared = []
    for kind, recorded in old.recorded().items():
        transformations = list(new.transformations.get(kind, {}).values())
        steps = sorted(_distinct(recorded), key=lambda step: step.count)
        are_from_zero = [step.count for step in steps] == list(range(len(steps)))
        if len(transformations) != 1 or not are_from_zero:
            return None
        compared.append(_replay(transformations[0], steps))
    return max(compared, key=lambda comparison: comparison.error, default=None)


def evidence_of(old: Tape, new: Tape, values: Sequence[PyTree]) -> Evidence:
    """The evidence of a run, from the tapes of both sides and the values that the old side yielded.

    The values count, too, as not every step is the method of an optimizer.
    """
    # A baseline has no tape of the old side, so the new one has to do.
    recorded = list(old.recorded().values()) or list(new.recorded().values())
    taken = max((len(_distinct(steps)) for steps in recorded), default=len(new.by_hand))
    moved = any(map(_moves, itertools.chain(*recorded))) if recorded else None
    return Evidence(
        max(taken, _changes(values)),
        moved,
        rounding=_rounding(old, new),
        remarks=[*_rate_that_stays(recorded)],
    )


def _changes(values: Sequence[PyTree]) -> int:
    """How many values differ from those ahead of them."""
    rows = map(leaves_by_path, values)
    return sum(_is_changed(before, after) for before, after in itertools.pairwise(rows))


def _is_changed(before: dict[str, NDArray[Any]], after: dict[str, NDArray[Any]]) -> bool:
    common = before.keys() & after.keys()
    return any(before[leaf].tobytes() != after[leaf].tobytes() for leaf in common)


def _rounding(old: Tape, new: Tape) -> dict[str, bool]:
    """Whether the gradients of each parameter are rounding alone.

    They are, if they are so on both sides, in all optimizers with a parameter of that name.
    """
    found: dict[str, bool] = {}
    others = new.recorded()
    for kind, steps in old.recorded().items():
        sizes = _largest_gradients([*steps, *others.get(kind, ())])
        for leaf, is_rounding in gradients_of_rounding(sizes).items():
            found[leaf] = found.get(leaf, True) and is_rounding
    return found


def _largest_gradients(steps: Sequence[Step]) -> dict[str, float]:
    """The largest finite gradient of each leaf."""
    sizes: dict[str, float] = {}
    for step in steps:
        for leaf, values in leaves_by_path(step.gradients).items():
            # One infinite gradient would make all others look like rounding.
            finite = np.abs(values[np.isfinite(values)]).astype(np.float64)
            sizes[leaf] = max(float(finite.max(initial=0.0)), sizes.get(leaf, 0.0))
    return sizes


def _moves(step: Step) -> bool:
    leaves = jax.tree_util.tree_leaves(step.before)
    pairs = zip(leaves, jax.tree_util.tree_leaves(step.after), strict=True)
    return any(not np.array_equal(before, after, equal_nan=True) for before, after in pairs)


def _rate_that_stays(recorded: Sequence[Sequence[Step]]) -> Iterator[str]:
    """The remark on a learning rate that is given at each step, and is always the same."""
    for steps in recorded:
        rates = {step.rate for step in steps if not math.isnan(step.rate)}
        if len(rates) == 1:
            yield (
                f"The learning rate is given at each step and was always {rates.pop():g}, "
                "so no change of it is proven."
            )
            return


def _distinct(steps: list[Step]) -> list[Step]:
    """The steps without the copies that further devices record."""
    found: dict[tuple[int, bytes], Step] = {}
    for step in steps:
        content = hashlib.blake2b()
        for leaf in leaves_by_path(step.after).values():
            content.update(leaf.tobytes())
        found.setdefault((step.count, content.digest()), step)
    return list(found.values())


def replayed(
    transformation: optax.GradientTransformation, steps: Sequence[Step]
) -> Iterator[PyTree]:
    """The parameters after each step, from the recorded ones ahead of it and the state so far."""
    # A definition that keeps its interface takes hyperparameters at each update.
    keeps_interface = hasattr(transformation, "update_hyper_params")
    is_given_rate = keeps_interface and not math.isnan(steps[0].rate)

    @jax.jit
    def update(before: PyTree, gradients: PyTree, rate: Any, state: Any) -> tuple[PyTree, Any]:
        state = with_rate(state, rate)
        overrides = {"learning_rate": rate} if is_given_rate else {}
        updates, state = transformation.update(gradients, state, before, **overrides)
        return optax.apply_updates(before, updates), state

    state: Any = jax.jit(transformation.init)(steps[0].before)
    for step in steps:
        moved, state = update(step.before, step.gradients, step.rate, state)
        yield moved


def _replay(transformation: optax.GradientTransformation, steps: list[Step]) -> Comparison:
    """Judge the steps of an old optimizer and their replay."""
    new = [leaves_by_path(moved) for moved in replayed(transformation, steps)]
    old = [leaves_by_path(step.after) for step in steps]
    before = {leaf: np.stack([values[leaf] for values in old]) for leaf in new[0]}
    after = {leaf: np.stack([values[leaf] for values in new]) for leaf in new[0]}
    return judge(before, after, leaves_by_path(steps[0].before))
