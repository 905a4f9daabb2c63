"""The states of optimizers, compared wherever their leaves correspond.

A checkpoint is converted by the same correspondence: the moments that each module of
`codemods.optimizers` names, counts and steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from flax import serialization
from numpy.typing import NDArray

from optim2optax.checkpoints.carrying import carried, carried_parts
from optim2optax.checkpoints.flax_msgpack import Array
from optim2optax.checkpoints.places import Path, leaves
from optim2optax.parity.exercised import Evidence
from optim2optax.parity.judge import REPLAY_GATE, Comparison, PyTree, Verdict, judge, name_of

SAMPLED = 4096
"""About so many elements of a larger leaf are compared, the same ones each time."""

NOT_COMPARED = "The state of the optimizer was not compared."
ALIKE = "The parameters agree; what the optimizer keeps beside them does not."

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


def state_dict(node: PyTree) -> dict[str, Any]:
    """The state dict of an optimizer.

    It is a legacy optimizer, a train state, or `(params, opt_state)` with or without a step.
    """
    if type(node) is tuple:
        return {name: serialization.to_state_dict(part) for name, part in _parts(node).items()}
    found: dict[str, Any] = serialization.to_state_dict(node)
    return found


def _parts(node: tuple[PyTree, ...]) -> dict[str, PyTree]:
    return dict(zip(("params", "opt_state", "step"), node, strict=False))


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


def merged(comparison: Comparison, found: Comparison) -> Comparison:
    """The comparison of the parameters, with that of the states added to it."""
    if found.verdict is Verdict.DIFFERENT:
        return replace(found, remarks=(ALIKE,))
    same = comparison.verdict is found.verdict is Verdict.IDENTICAL
    return replace(
        comparison,
        verdict=Verdict.IDENTICAL if same else Verdict.EQUIVALENT,
        error=max(comparison.error, found.error),
        leaves=(*comparison.leaves, *found.leaves),
        error_by_step=tuple(map(max, comparison.error_by_step, found.error_by_step)),
    )


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


def correspondence(old: PyTree, new: PyTree) -> list[tuple[Path, Path, int]]:
    """The places of the new state that correspond to places of the old one.

    Each comes with the place in the old state and the sign. An old state whose leaves are the
    numbers of their places is converted as a checkpoint: the new leaves then show where they are
    from. Nothing corresponds where a checkpoint would not be converted.
    """
    # Places are numbered from 1, as a moment may change its sign and 0 has none.
    places = [path for path, leaf in leaves(state_dict(old)) if leaf is not None]
    numbers = {path: number for number, path in enumerate(places, 1)}
    numbered = _numbered(state_dict(old), numbers)
    blank = jax.tree_util.tree_map(lambda leaf: np.full(np.shape(leaf), np.nan), new)
    try:
        result = (
            carried_parts(numbered, _parts(blank))
            if type(new) is tuple
            else carried(numbered, blank)
        )
    except Exception:  # noqa: BLE001 - a user's transformation may refuse the probe for its sign
        return []
    compared = ["opt_state"]
    # A definition that keeps its interface counts in its state, which the program may replace.
    if not hasattr(getattr(new, "tx", None), "update_hyper_params"):
        compared.append("step")
    found: list[tuple[Path, Path, int]] = []
    for path, leaf in leaves(result):
        if path[0] in compared:
            values = np.asarray(leaf, np.float64).ravel()
            # A leaf that is not from the old state has stayed NaN.
            if values.size and np.isfinite(values[0]):
                source = places[abs(int(values[0])) - 1]
                found.append((path, source, 1 if values[0] > 0 else -1))
    return found


def _numbered(tree: Any, numbers: Mapping[Path, int], path: Path = ()) -> Any:
    """A state dict in which each leaf is full of the number of its place."""
    if isinstance(tree, Mapping):
        return {key: _numbered(value, numbers, (*path, key)) for key, value in tree.items()}
    if tree is None:
        return None
    values = np.full(np.shape(tree), float(numbers[path]))
    return Array(values.shape, values.dtype, memoryview(values.tobytes()))
