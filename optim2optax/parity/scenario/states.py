"""What a scenario yields: the parameters, and the states of its optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from optim2optax.checkpoints.state_dict_places import Path
from optim2optax.parity.judging.comparison import (
    REPLAY_GATE,
    Comparison,
    Verdict,
    merged,
)
from optim2optax.parity.judging.exercised import Evidence
from optim2optax.parity.judging.judge import judge_states
from optim2optax.parity.judging.movement import PyTree, name_of
from optim2optax.parity.recording.any_optimizer import (
    has_params,
    params,
    state_leaves,
)
from optim2optax.parity.replaying import correspondence, state_dict


def parameters(tree: PyTree) -> PyTree:
    """A tree with the parameters of every optimizer in the place of the optimizer.

    An optimizer is an `Optimizer`, a `TrainState`, or `(params, opt_state)`. So one scenario serves
    both sides. It is applied to all that a scenario yields.
    """
    return jax.tree_util.tree_map(_parameters, tree, is_leaf=holds_parameters)


def _parameters(node: Any) -> PyTree:
    # yield params, opt_state
    if _is_pair(node):
        return node[0]
    return params(node) if holds_parameters(node) else node


def holds_parameters(node: Any) -> bool:
    """Whether this is an optimizer, in any of the forms that `parameters` knows."""
    return has_params(node) or _is_pair(node)


def _is_pair(node: Any) -> bool:
    """Whether this is `(params, opt_state)`, perhaps with the number of steps."""
    if type(node) is not tuple or len(node) not in (2, 3):
        return False
    return _is_optimizer_state(node[1])


def _is_optimizer_state(node: Any) -> bool:
    """Whether this is the state of a gradient transformation, or a tuple of those of a chain."""
    if type(node) is tuple:
        return bool(node) and all(map(_is_optimizer_state, node))
    kind = type(node)
    # optax's states are named tuples.
    if not hasattr(kind, "_fields"):
        return False
    if kind.__module__.startswith("optax."):
        return True
    # Helpers that `rewrite` emits define states such as `ScaleBySumOfSquaresState`.
    return kind.__name__.startswith("ScaleBy")


@dataclass
class States:
    """The optimizers that a scenario yields, by their places in its values.

    `first` are those of its first value, `leaves` the leaves of their states in all its values, of
    which there are a `number`.
    """

    first: dict[str, PyTree] = field(default_factory=dict)
    leaves: dict[tuple[str, Path], list[NDArray[Any]]] = field(default_factory=dict)
    number: int = 0

    def keep(self, value: PyTree) -> None:
        """Keep the optimizers of a value that a scenario yields."""
        nodes, _ = jax.tree_util.tree_flatten_with_path(value, is_leaf=holds_parameters)
        optimizers = {
            name_of(path): node for path, node in nodes if holds_parameters(node)
        }
        # A later step may be given the same buffers to write into, so values are copied.
        if not self.number:
            self.first = jax.tree_util.tree_map(np.array, optimizers)
        self.number += 1
        for name, node in optimizers.items():
            for place, leaf in state_leaves(state_dict(node)):
                self.leaves.setdefault((name, place), []).append(np.array(leaf))

    def at(self, name: str, place: Path) -> list[NDArray[Any]]:
        """The leaf at a place of an optimizer's state, in all values; empty if one has none."""
        found = self.leaves.get((name, place), [])
        return found if len(found) == self.number else []


def with_states(
    comparison: Comparison, old: States, new: States, evidence: Evidence
) -> Comparison:
    """The comparison of the parameters, with the verdict on the optimizers' states added to it."""
    is_settled = comparison.verdict in (Verdict.DIFFERENT, Verdict.NOTHING_PROVEN)
    if is_settled or not new.first:
        return comparison
    closed_loop = comparison.gate != REPLAY_GATE
    # Two custom transformations have no places that are known to correspond.
    found = judge_states(_corresponding(old, new), closed_loop, evidence)
    return merged(comparison, found)


def _corresponding(
    old: States, new: States
) -> Iterator[tuple[str, list[NDArray[Any]], list[NDArray[Any]], int]]:
    """The places in the states of the new side, with the values on both sides, and the sign."""
    for name in old.first.keys() & new.first.keys():
        for place, source, sign in correspondence(old.first[name], new.first[name]):
            # opt_state/0/mu/Dense_0/kernel
            leaf = "/".join(part for part in (name, *place) if part)
            yield leaf, old.at(name, source), new.at(name, place), sign
