"""The states of the optimizers that a scenario yields, compared where their leaves correspond."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from optim2optax.checkpoints.places import Path, leaves
from optim2optax.parity.judging.comparison import REPLAY_GATE, Comparison, Verdict
from optim2optax.parity.judging.exercised import Evidence
from optim2optax.parity.judging.judge import judge
from optim2optax.parity.judging.leaves import PyTree, name_of
from optim2optax.parity.judging.states import NOT_COMPARED, merged
from optim2optax.parity.replaying.correspondence import correspondence, state_dict

SAMPLED = 4096
"""About so many elements of a larger leaf are compared, the same ones each time."""

Row = dict[Path, NDArray[Any]]
"""The leaves of an optimizer's state dict."""


@dataclass
class States:
    """The optimizers that a scenario yields, by their places in its values.

    `first` are those of its first value, `rows` the leaves of their states in all values.
    """

    first: dict[str, PyTree] = field(default_factory=dict)
    rows: list[dict[str, Row]] = field(default_factory=list)

    def keep(self, value: PyTree, holds_parameters: Callable[[Any], bool]) -> None:
        """Keep the optimizers of a value that a scenario yields."""
        nodes = jax.tree_util.tree_flatten_with_path(value, is_leaf=holds_parameters)[0]
        optimizers = {name_of(path): node for path, node in nodes if holds_parameters(node)}
        if not self.rows:
            self.first = jax.tree_util.tree_map(np.array, optimizers)
        self.rows.append({name: _row(state_dict(node)) for name, node in optimizers.items()})


def _row(content: Mapping[str, Any]) -> Row:
    """The leaves of a state dict beside the parameters, and only numbers."""
    found: Row = {}
    for path, value in leaves(content):
        if path[0] not in ("target", "params"):
            leaf = np.asarray(value)
            if leaf.dtype.kind in "biuf":
                found[path] = _sampled(leaf)
    return found


def _sampled(leaf: NDArray[Any]) -> NDArray[Any]:
    stride = -(-leaf.size // SAMPLED)  # rounded up
    return np.array(leaf) if stride <= 1 else np.array(leaf.ravel()[::stride])


def with_states(comparison: Comparison, old: States, new: States, evidence: Evidence) -> Comparison:
    """The comparison of the parameters, with the verdict on the optimizers' states added to it."""
    if comparison.verdict in (Verdict.DIFFERENT, Verdict.NOTHING_PROVEN) or not new.first:
        return comparison
    before, after = _corresponding(old, new)
    # Two custom transformations have no places that are known to correspond.
    if not before:
        return replace(comparison, remarks=(*comparison.remarks, NOT_COMPARED))
    start = {leaf: np.zeros_like(values[0]) for leaf, values in before.items()}
    closed_loop = comparison.gate != REPLAY_GATE
    found = judge(before, after, start, closed_loop, replace(evidence, moved=True))
    return merged(comparison, found)


def _corresponding(
    old: States, new: States
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """The leaves that correspond in the states of both sides, by their places in the new one.

    They are stacked over all values that the scenario yields.
    """
    before: dict[str, NDArray[Any]] = {}
    after: dict[str, NDArray[Any]] = {}
    for name in old.first.keys() & new.first.keys():
        for place, source, sign in correspondence(old.first[name], new.first[name]):
            old_values = [row[name].get(source) for row in old.rows if name in row]
            new_values = [row[name].get(place) for row in new.rows if name in row]
            is_in_all = len(old_values) == len(new_values) == len(old.rows)
            if is_in_all and _have_one_shape([*old_values, *new_values]):
                leaf = "/".join(filter(None, (name, *place)))
                before[leaf] = _signed(np.stack(list(map(np.asarray, old_values))), sign)
                stacked = np.stack(list(map(np.asarray, new_values)))
                # A count may be int64 on one side, as `jnp.int32` means that in float64.
                integers = before[leaf].dtype.kind in "iu" and stacked.dtype.kind in "iu"
                after[leaf] = stacked.astype(before[leaf].dtype) if integers else stacked
    return before, after


def _have_one_shape(found: Sequence[NDArray[Any] | None]) -> bool:
    """Whether there are arrays alone, all of one shape."""
    shapes = {None if values is None else values.shape for values in found}
    return len(shapes) == 1 and None not in shapes


def _signed(values: NDArray[Any], sign: int) -> NDArray[Any]:
    return values if sign > 0 else np.negative(values)
