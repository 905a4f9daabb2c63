"""The steps of one side of a scenario, kept in memory."""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from optim2optax.parity.judging.leaves import PyTree, leaves_by_path, name_of
from optim2optax.parity.recording.optimizers import params
from optim2optax.parity.replaying.replay import Step

Kind = tuple[tuple[str, tuple[int, ...]], ...]
"""What distinguishes optimizers: the paths and shapes of their parameters."""


class Tape:
    """The steps of one side, and the transformations that it uses, by the kind of their parameters.

    `complete` says whether states and hyperparameters follow from the steps, `defined` whether
    a definition takes steps without an optimizer. `by_hand` are the updates that a program applies
    itself.
    """

    def __init__(self) -> None:
        self.steps: dict[Kind, list[Step]] = defaultdict(list)
        # Those of one kind by the identity of their functions: one `tx` in several states is one.
        self.transformations: dict[Kind, dict[int, optax.GradientTransformation]] = {}
        self.complete = True
        self.by_hand: set[int] = set()
        self.defined = False
        self.widened = False
        self._lock = threading.Lock()

    def keep(
        self, step: Any, before: Any, gradients: Any, rate: Any, after: Any
    ) -> None:
        """Keep a step."""
        trees = (before, gradients, after)
        before, gradients, after = jax.tree_util.tree_map(np.array, trees)
        found = Step(int(step), before, gradients, float(rate), after)
        with self._lock:
            self.steps[kind_of(before)].append(found)

    def update(self, before: Any, after: Any) -> None:
        """Count an update; nothing can be replayed into it."""
        del before
        leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(after)]
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
            kind = kind_of(params(state))
            of_kind = self.transformations.setdefault(kind, {})
            of_kind[id(state.tx.update)] = state.tx

    def widen(self) -> None:
        """Note that parameters are in float64 that were to be in float32."""
        self.widened = True

    def lose(self) -> None:
        """Note that states or hyperparameters do not follow from the steps."""
        self.complete = False


def kind_of(tree: PyTree) -> Kind:
    """The kind of some parameters, which may be traced."""
    paths_and_leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    shapes = [(name_of(path), jnp.shape(leaf)) for path, leaf in paths_and_leaves]
    return tuple(sorted(shapes))


def distinct(steps: list[Step]) -> list[Step]:
    """The steps without the copies that further devices record."""
    found: dict[tuple[int, bytes], Step] = {}
    for step in steps:
        content = hashlib.blake2b()
        for leaf in leaves_by_path(step.after).values():
            content.update(leaf.tobytes())
        key = (step.count, content.digest())
        found.setdefault(key, step)
    return list(found.values())
