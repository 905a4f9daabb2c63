"""The steps of one side of a scenario, kept in memory, and what they tell of its run."""

from __future__ import annotations

import itertools
import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import optax
from numpy.typing import NDArray

from optim2optax.parity.judging.exercised import Evidence
from optim2optax.parity.judging.movement import (
    gradients_of_rounding,
    largest,
    leaves_by_path,
    named_leaves,
)
from optim2optax.parity.recording.any_optimizer import kind_of, params
from optim2optax.parity.recording.inputs import Step, digest_of
from optim2optax.parity.recording.methods import UNKNOWN, Keeper
from optim2optax.parity.scenario.states import States

if TYPE_CHECKING:
    from optim2optax.parity.recording.any_optimizer import Kind


class Tape(Keeper):
    """The steps of one side, and the transformations that it uses, by the kind of their parameters.

    `values` are the leaves of what the scenario yields, `states` has its optimizers. `replay`
    says whether it replays recorded gradients.
    `complete` says whether states and hyperparameters follow from the steps, `defined` whether
    a definition takes steps without an optimizer. `by_hand` are the updates that a program applies
    itself.
    """

    def __init__(self, rounding: bool = False, wide: bool = True) -> None:
        super().__init__(rounding, wide)
        self.values: list[dict[str, NDArray[Any]]] = []
        self.states = States()
        self.replay = False
        self.steps: dict[Kind, dict[tuple[int, bytes], Step]] = defaultdict(dict)
        # Those of one kind by the identity of their functions: one `tx` in several states is one.
        self.transformations: dict[Kind, dict[int, optax.GradientTransformation]] = {}
        self.complete = True
        self.by_hand: set[bytes] = set()
        self.defined = False
        self.widened = False
        self._lock = threading.Lock()

    def keep(
        self, step: Any, before: Any, after: Any, gradients: Any, rate: Any
    ) -> None:
        """Keep a step, once for all devices that take it.

        Without its gradients it is counted; nothing can be replayed into it.
        """
        trees = (before, gradients, after)
        before, gradients, after = jax.tree_util.tree_map(np.array, trees)
        found = Step(int(step), float(rate), before, gradients, after)
        digest = digest_of(jax.tree_util.tree_leaves(after))
        with self._lock:
            if gradients is None:
                self.defined |= found.number != UNKNOWN
                self.by_hand.add(digest)
            else:
                steps = self.steps[kind_of(named_leaves(before))]
                steps.setdefault((found.number, digest), found)

    def recorded(self) -> dict[Kind, list[Step]]:
        """The steps so far; callbacks may still be coming in."""
        with self._lock:
            return {kind: [*steps.values()] for kind, steps in self.steps.items()}

    def meet(self, state: Any) -> None:
        """Keep the transformation of a train state."""
        # TrainState.create(apply_fn=model.apply, params=params, tx=tx)
        if hasattr(state, "tx"):
            kind = kind_of(named_leaves(params(state)))
            of_kind = self.transformations.setdefault(kind, {})
            of_kind[id(state.tx.update)] = state.tx

    def widen(self) -> None:
        """Note that parameters are in float64 that were to be in float32."""
        self.widened = True

    def lose(self) -> None:
        """Note that states or hyperparameters do not follow from the steps."""
        self.complete = False


def evidence_of(old: Tape, new: Tape) -> Evidence:
    """The evidence of a run, from the tapes of both sides.

    The values that the old side yielded count, too, as not every step is the method of an
    optimizer.
    """
    # A baseline has no tape of the old side, so the new one has to do.
    recorded = list(old.recorded().values()) or list(new.recorded().values())
    taken = max(map(len, recorded), default=len(new.by_hand))
    moved = any(
        _is_changed(leaves_by_path(step.before), leaves_by_path(step.after))
        for step in itertools.chain(*recorded)
    )
    changes = sum(itertools.starmap(_is_changed, itertools.pairwise(old.values)))
    return Evidence(
        taken=max(taken, changes),
        moved=moved if recorded else None,
        rounding=_rounding(old, new),
        remarks=[*_rate_that_stays(recorded)],
    )


def _is_changed(
    before: dict[str, NDArray[Any]], after: dict[str, NDArray[Any]]
) -> bool:
    common = before.keys() & after.keys()
    # NaN equals NaN here: a loss that has diverged moves nothing any more.
    return any(
        not np.array_equal(before[leaf], after[leaf], equal_nan=True) for leaf in common
    )


def _rounding(old: Tape, new: Tape) -> dict[str, bool]:
    """Whether the gradients of each parameter are rounding alone.

    They are, if they are so on both sides, in all optimizers with a parameter of that name.
    """
    found: dict[str, bool] = {}
    others = new.recorded()
    for kind, steps in old.recorded().items():
        # One infinite gradient would make all others look like rounding.
        sizes = (
            {leaf: largest(of) for leaf, of in leaves_by_path(step.gradients).items()}
            for step in [*steps, *others.get(kind, ())]
        )
        for leaf, is_rounding in gradients_of_rounding(sizes).items():
            found[leaf] = found.get(leaf, True) and is_rounding
    return found


def _rate_that_stays(recorded: Sequence[Sequence[Step]]) -> Iterator[str]:
    """The remark on a learning rate that is given at each step, and is always the same."""
    # optimizer.apply_gradient(grads, learning_rate=1e-3)
    for steps in recorded:
        rates = {step.rate for step in steps if not math.isnan(step.rate)}
        if len(rates) == 1:
            yield (
                f"The learning rate is given at each step and was always {rates.pop():g}, "
                "so no change of it is proven."
            )
            return
