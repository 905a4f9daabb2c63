"""The states of optimizers, compared wherever it is known what of the one corresponds to what of the other.

That is what a checkpoint is carried over by: the moments that each module of `codemods.optimizers` names, counts and steps.
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
"""About so many elements of a larger leaf are compared, always the same ones."""

NOT_COMPARED = "The state of the optimizer was not compared."
ALIKE = "The parameters agree; what the optimizer keeps beside them does not."

Row = dict[Path, NDArray[Any]]
"""The leaves of an optimizer's state dict."""


@dataclass
class States:
    """The optimizers that a scenario yields, by their places: as they were first, and all that they held since."""

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
    """The state dict of a legacy optimizer, of a train state, or of `(params, opt_state)` with or without a step."""
    if type(node) is tuple:
        return {name: serialization.to_state_dict(part) for name, part in _parts(node).items()}
    found: dict[str, Any] = serialization.to_state_dict(node)
    return found


def _parts(node: tuple[PyTree, ...]) -> dict[str, PyTree]:
    return dict(zip(("params", "opt_state", "step"), node, strict=False))


def _row(content: Mapping[str, Any]) -> Row:
    kept = {
        path: np.asarray(leaf)
        for path, leaf in leaves(content)
        if path[0] not in ("target", "params")
    }
    return {path: _sampled(leaf) for path, leaf in kept.items() if leaf.dtype.kind in "biuf"}


def _sampled(leaf: NDArray[Any]) -> NDArray[Any]:
    stride = -(-leaf.size // SAMPLED)
    return np.array(leaf) if stride <= 1 else np.array(leaf.ravel()[::stride])


def with_states(comparison: Comparison, old: States, new: States, evidence: Evidence) -> Comparison:
    """The comparison of the parameters, with the verdict on the states of the optimizers added to it."""
    if comparison.verdict in (Verdict.DIFFERENT, Verdict.NOTHING_PROVEN) or not new.first:
        return comparison
    before, after = _corresponding(old, new)
    if not before:
        return replace(comparison, remarks=(*comparison.remarks, NOT_COMPARED))
    start = {leaf: np.zeros_like(values[0]) for leaf, values in before.items()}
    closed_loop = comparison.gate != REPLAY_GATE
    return merged(
        comparison, judge(before, after, start, closed_loop, replace(evidence, moved=True))
    )


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
    """What corresponds in the states of both sides, stacked over all that was yielded, by its place in the new one."""
    before: dict[str, NDArray[Any]] = {}
    after: dict[str, NDArray[Any]] = {}
    for name in old.first.keys() & new.first.keys():
        for place, source, sign in correspondence(old.first[name], new.first[name]):
            ours = [row[name].get(source) for row in old.rows if name in row]
            theirs = [row[name].get(place) for row in new.rows if name in row]
            if _all_alike([*ours, *theirs]) and len(ours) == len(theirs) == len(old.rows):
                leaf = "/".join(filter(None, (name, *place)))
                before[leaf] = _signed(np.stack([np.asarray(values) for values in ours]), sign)
                stacked = np.stack([np.asarray(values) for values in theirs])
                integers = before[leaf].dtype.kind in "iu" and stacked.dtype.kind in "iu"
                after[leaf] = stacked.astype(before[leaf].dtype) if integers else stacked
    return before, after


def _all_alike(found: Sequence[NDArray[Any] | None]) -> bool:
    return (
        len({None if values is None else values.shape for values in found}) == 1
        and found[0] is not None
    )


def _signed(values: NDArray[Any], sign: int) -> NDArray[Any]:
    return values if sign > 0 else np.negative(values)


def correspondence(old: PyTree, new: PyTree) -> list[tuple[Path, Path, int]]:
    """Each place of the new state with the place of the old one that it is carried over from, and the sign.

    The old leaves are carried over as numbers of their places. Nothing corresponds where a checkpoint would not be carried over.
    """
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
    except Exception:  # noqa: BLE001 - a transformation of the user's own may refuse the probe that tells its sign
        return []
    # A definition that keeps its interface counts in a state of its own, which the program may exchange by itself.
    compared = (
        ("opt_state",)
        if hasattr(getattr(new, "tx", None), "update_hyper_params")
        else ("opt_state", "step")
    )
    found = [
        (path, np.asarray(leaf, np.float64).ravel())
        for path, leaf in leaves(result)
        if path[0] in compared
    ]
    return [
        (path, places[abs(int(values[0])) - 1], 1 if values[0] > 0 else -1)
        for path, values in found
        if values.size and np.isfinite(values[0])
    ]


def _numbered(tree: Any, numbers: Mapping[Path, int], path: Path = ()) -> Any:
    """A state dict in which each leaf is full of the number of its place."""
    if isinstance(tree, Mapping):
        return {key: _numbered(value, numbers, (*path, key)) for key, value in tree.items()}
    if tree is None:
        return None
    values = np.full(np.shape(tree), float(numbers[path]))
    return Array(values.shape, values.dtype, memoryview(values.tobytes()))
