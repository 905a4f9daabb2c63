"""What a checkpoint contains: legacy optimizers and train states by their places, and the rest."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from codemods.optimizers import optimizers
from optim2optax.checkpoints.flax_msgpack import Tree
from optim2optax.checkpoints.state_dict_places import Path, leaves

Kind = Literal["legacy optimizer", "train state"]
COMPOSITE = "MultiOptimizer"
TRAIN_STATE = frozenset(("step", "params", "opt_state"))


@dataclass(frozen=True)
class StoredLeaf:
    """A leaf by its path: shape and dtype if it is an array, else None and its type's name."""

    path: str
    shape: tuple[int, ...] | None
    dtype: str
    nbytes: int

    @property
    def numbers(self) -> int:
        """How many numbers it has; a leaf without a shape is one."""
        return math.prod(self.shape or ())


@dataclass(frozen=True)
class FoundState:
    """An optimizer, or the train state in the place of one.

    `names` are the legacy optimizers that it may be, by what it keeps for a parameter: several if
    they keep the same. `copies` is the size of the leading axis that all its arrays have if it was
    replicated, else None.
    """

    path: str
    kind: Kind
    names: tuple[str, ...]
    step: int | None
    copies: int | None
    parameters: tuple[StoredLeaf, ...]


@dataclass(frozen=True)
class Contents:
    """All that a checkpoint contains: optimizers and train states, and the leaves beside them."""

    found: tuple[FoundState, ...] = ()
    others: tuple[StoredLeaf, ...] = ()


def contents(tree: Tree) -> Contents:
    """What is in a tree."""
    found: list[FoundState] = []
    others: list[StoredLeaf] = []
    # breadth first: what is nearer to the top is listed first
    pending: deque[tuple[Path, Tree]] = deque([((), tree)])
    while pending:
        path, node = pending.popleft()
        if not isinstance(node, dict):
            others.append(_leaf(path, node))
            continue
        optimizer = _found(path, node)
        if optimizer is not None:
            found.append(optimizer)
        else:
            pending.extend(((*path, key), value) for key, value in node.items())
    return Contents(tuple(found), tuple(others))


def is_legacy(node: Tree) -> bool:
    """Whether this is the state dict of a legacy optimizer."""
    if not isinstance(node, dict) or {*node} != {"target", "state"}:
        return False
    return _is_state(node["state"]) or has_groups(node["state"])


def has_groups(state: Tree) -> bool:
    """Whether this is the state of a `MultiOptimizer` as Flax up to 0.3.2 stored it."""
    if not _is_list(state) or not state:
        return False
    # {"0": {"step": …, "param_states": {"0": …, "1": …}}, "1": …}
    return all(
        _is_state(group) and _is_list(group["param_states"]) for group in state.values()
    )


def step_of(optimizer: Mapping[str, Tree]) -> Tree:
    """The step of a legacy optimizer; that of its first group stands for all."""
    state = optimizer["state"]
    return (state["0"] if has_groups(state) else state)["step"]


def _is_list(tree: Tree) -> bool:
    """Whether this is the state dict of a list or tuple, with the keys 0, 1, …."""
    if not isinstance(tree, dict):
        return False
    return {*tree} == {str(number) for number in range(len(tree))}


def _is_state(state: Tree) -> bool:
    return isinstance(state, dict) and {*state} == {"step", "param_states"}


def _found(place: Path, node: Mapping[str, Tree]) -> FoundState | None:
    names: set[str] = set()
    kind: Kind
    if is_legacy(node):
        # {"target": …, "state": {"step": …, "param_states": …}}
        kind, params, step = "legacy optimizer", node["target"], step_of(node)
        names = _names(node["state"], params)
    elif {*node} >= TRAIN_STATE:
        # {"step": …, "params": …, "opt_state": …}
        kind, params, step = "train state", node["params"], node["step"]
    else:
        return None
    number, copies = _steps(step)
    parameters = tuple(_leaf(path, leaf) for path, leaf in leaves(params))
    return FoundState(
        "/".join(place), kind, tuple(sorted(names)), number, copies, parameters
    )


def _steps(step: Tree) -> tuple[int | None, int | None]:
    """The number of steps, and of copies."""
    if isinstance(step, int):
        return step, None
    # a replicated optimizer has an array of equal steps
    if not isinstance(step, np.ndarray) or not step.size or step.dtype.kind not in "iu":
        return None, None
    copies = step.shape[0] if step.shape else None
    return int(step.flat[0]), copies


def _names(state: Tree, params: Tree) -> set[str]:
    """The optimizers that keep the same fields for a parameter as this state."""
    if has_groups(state):
        return {COMPOSITE}
    states = _of_parameters(state["param_states"], params)
    kept = {frozenset(fields) for fields in states}
    if len(kept) > 1:  # parameters with other optimizers than the rest
        return {COMPOSITE}
    return {name for fields in kept for name in by_fields().get(fields, ())}


def _of_parameters(states: Tree, params: Tree) -> Iterator[Mapping[str, Tree]]:
    """The state of each parameter."""
    # the states have the structure of the params, with a dict of fields at each leaf
    if isinstance(params, dict) and isinstance(states, dict):
        for key, value in params.items():
            yield from _of_parameters(states.get(key), value)
    elif isinstance(states, dict):
        yield states


@cache
def by_fields() -> Mapping[frozenset[str], tuple[str, ...]]:
    """The legacy optimizers by the fields that they keep for each parameter."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for name, optimizer in optimizers().items():
        if name != COMPOSITE:
            fields = frozenset(optimizer.state)
            found[fields] = (*found.get(fields, ()), name)
    return found


def _leaf(place: Path, value: Tree) -> StoredLeaf:
    path = "/".join(place)
    if isinstance(value, np.ndarray):
        return StoredLeaf(path, value.shape, str(value.dtype), value.nbytes)
    return StoredLeaf(path, None, type(value).__name__, 0)
