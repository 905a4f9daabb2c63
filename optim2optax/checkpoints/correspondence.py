"""What each leaf of a state of optax was in the state of the legacy optimizer.

The types of the states say it, and where their fields begin: below a field that is kept for each
parameter stands a path of the params, whatever these are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from flax import serialization

from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer
from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.state_dict_places import Path, key_of, leaves, quoted

STEP = ("state", "step")
COUNT = "count"
TRACE_STATE = "TraceState"
MASKED_STATE = "MaskedState"
WEIGHT_NORM_STATE = "WeightNormState"
SPLIT = ("direction", "scale")
"""The two parts of a parameter that `WeightNorm` has an inner optimizer step."""

WRAPPERS = (MASKED_STATE, "MultiTransformState", "PartitionState")
"""The states that contain only other states."""

SCHEDULES = ("ScaleByScheduleState", "WrappedScheduleState")
INJECTED = ("InjectHyperparamsState", "InjectStatefulHyperparamsState")
HYPERPARAMS = "hyperparams"
"""The field with what the program sets at each step: the old checkpoint has nothing of it."""


@dataclass(frozen=True)
class StatePlace:
    """A leaf of a state of optax.

    Attributes:
      path: its place in the state dict of the whole state.
      state: the place of the state that has it.
      group: the place of the masked state around that, if there is one.
      source: where the legacy optimizer had the same value; None if it had no such value.
      param: the parameter for which it is kept; None if it is not kept for a parameter.
      shape: its own shape.
    """

    path: Path
    state: Path
    group: Path
    source: Path | None
    param: Path | None = None
    shape: tuple[int, ...] = ()


def places_of(opt_state: Any) -> list[StatePlace]:
    """All leaves of a state of optax.

    Raises:
      CheckpointError: if it has a state of a type that corresponds to no legacy optimizer.
    """
    return list(_places(opt_state, (), (), is_split=False))


def has_interface(tx: Any) -> bool:
    """Whether a transformation keeps the interface of its definition, and so its state."""
    return hasattr(tx, "update_hyper_params")


def is_trace(node: Any) -> bool:
    """Whether this is the state of `optax.trace`."""
    return _kind(node) == TRACE_STATE


def nodes_of(tree: Any, is_wanted: Callable[[Any], bool]) -> dict[Path, Any]:
    """The nodes of one kind in a tree, with their places."""
    nodes, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_wanted)
    return {tuple(map(key_of, keys)): node for keys, node in nodes if is_wanted(node)}


def _kind(node: Any) -> str:
    """The name of a state's type, without a prefix from `rewrite`; empty if it is not a state."""
    # FlaxWeightNormState, emitted into a program that has a WeightNormState
    name = type(node).__name__ if hasattr(node, "_fields") else ""
    known = (*kept_by(), *WRAPPERS, *SCHEDULES, *INJECTED, WEIGHT_NORM_STATE)
    prefixed = (word for word in known if name in (f"Flax{word}", f"FlaxOptim{word}"))
    return name if name in known else next(prefixed, "")


def _places(node: Any, path: Path, group: Path, is_split: bool) -> Iterator[StatePlace]:
    kind = _kind(node)
    # a named tuple is a state, not a container
    if isinstance(node, Mapping | list) or type(node) is tuple:
        # (TraceState(…), EmptyState())
        items = node.items() if isinstance(node, Mapping) else enumerate(node)
        for key, child in items:
            yield from _places(child, (*path, str(key)), group, is_split)
        return
    if not kind:
        _refuse_leaves(node, path)
        return
    kept = old_names(kind)
    for field in node._fields:
        value = getattr(node, field)
        place = (*path, field)
        if field in kept:
            # ScaleByAdamState(count=…, mu=…, nu=…)
            for below, leaf in leaves_of(value):
                param = below
                source: Path = (kept[field],)
                if is_split and below:
                    # direction/dense/kernel of optax is dense/kernel/direction_state of WeightNorm
                    part, *rest = below
                    param = tuple(rest)
                    source = (f"{part}_state", *source)
                source = ("state", "param_states", *param, *source)
                yield StatePlace(
                    (*place, *below), path, group, source, param, np.shape(leaf)
                )
        elif field in (COUNT, HYPERPARAMS):
            for below, _ in leaves_of(value):
                source_of_all = STEP if field == COUNT else None
                yield StatePlace((*place, *below), path, group, source_of_all)
        else:
            # MaskedState(inner_state=…), and hyperparams_states with WrappedScheduleState(count=…)
            inner_group = path if kind == MASKED_STATE else group
            is_inner = is_split or kind == WEIGHT_NORM_STATE
            yield from _places(value, place, inner_group, is_inner)


def _refuse_leaves(node: Any, path: Path) -> None:
    """Refuse a state of an unknown type, unless it has no leaf."""
    for below, leaf in leaves_of(node):
        if leaf is not None:
            place = quoted(("opt_state", *path, *below))
            why = f"of the type {type(node).__name__}, which no legacy optimizer had"
            if hasattr(node, "dtype"):
                why = "in no state of optax, as in a state dict: give the state itself"
            raise CheckpointError(f"{place} of the new state is {why}.")


@cache
def kept_by() -> Mapping[str, LegacyOptimizer]:
    """The states of optax, and those that `rewrite` emits, with a legacy optimizer for each.

    The legacy optimizer kept the same values.
    """
    found: dict[str, LegacyOptimizer] = {}
    for optimizer in optimizers().values():
        found.update(dict.fromkeys(optimizer.kept_in, optimizer))
    return found


@cache
def old_names(kind: str) -> Mapping[str, str]:
    """What a legacy optimizer called the fields that a state of optax keeps for each parameter."""
    if kind == WEIGHT_NORM_STATE:
        return {part: part for part in SPLIT}
    optimizer = kept_by().get(kind)
    return (
        {} if optimizer is None else {new: old for old, new in optimizer.state.items()}
    )


def leaves_of(tree: Any) -> Iterator[tuple[Path, Any]]:
    """The leaves of any tree with their places in its state dict."""
    return leaves(serialization.to_state_dict(tree))
