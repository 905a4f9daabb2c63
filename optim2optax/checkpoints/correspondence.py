"""What each leaf of a state of optax was in the state of the legacy optimizer.

The types of the states tell, and where their fields begin: what is below a field that is kept for each parameter is a path of the
parameters, whatever these are called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer
from flax import serialization

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.places import Path, key_of, leaves, said

STEP = ("state", "step")
COUNT = "count"
TRACE_STATE = "TraceState"
MASKED_STATE = "MaskedState"
WEIGHT_NORM = "WeightNorm"
WEIGHT_NORM_STATE = "WeightNormState"
SPLIT = ("direction", "scale")
"""The two parts of a parameter that `WeightNorm` has an inner optimizer step."""

WRAPPERS = (MASKED_STATE, "MultiTransformState", "PartitionState")
"""The states that hold others, and nothing else."""

SCHEDULES = ("ScaleByScheduleState", "WrappedScheduleState")
INJECTED = ("InjectHyperparamsState", "InjectStatefulHyperparamsState")
HYPERPARAMS = "hyperparams"
"""Where these have what the program sets at each step: the old checkpoint has nothing of it."""


@dataclass(frozen=True)
class Place:
    """A leaf of a state of optax.

    `path` is its place in the state dict of the whole state, `state` that of the state that has it, and `group` that of the
    masked one around it, if there is one. `source` is where the legacy optimizer had the same; None if it had not. `param` is the
    parameter for which it is kept, None if for none, and `shape` its own shape.
    """

    path: Path
    state: Path
    group: Path
    source: Path | None
    param: Path | None = None
    shape: tuple[int, ...] = ()


def places_of(opt_state: Any) -> list[Place]:
    """All leaves of a state of optax.

    Raises:
      CheckpointError: if it has a state of a type that no legacy optimizer had anything of.
    """
    return list(_places(opt_state, (), (), is_split=False))


def has_interface(tx: Any) -> bool:
    """Whether a transformation keeps the interface of its definition, and so the state that this had."""
    return hasattr(tx, "update_hyper_params")


def is_trace(node: Any) -> bool:
    """Whether this is the state of `optax.trace`."""
    return _kind(node) == TRACE_STATE


def nodes_of(opt_state: Any) -> list[tuple[Path, Any]]:
    """The states of traces, and all leaves beside them, with their places."""
    nodes, _ = jax.tree_util.tree_flatten_with_path(opt_state, is_leaf=is_trace)
    return [(tuple(map(key_of, keys)), node) for keys, node in nodes]


def _kind(node: Any) -> str:
    """The name of a state's type, which `rewrite` may have put another word ahead of; nothing of what is none."""
    name = type(node).__name__ if hasattr(node, "_fields") else ""
    known = (*kept_by(), *WRAPPERS, *SCHEDULES, *INJECTED, WEIGHT_NORM_STATE)
    return next((word for word in known if name in (word, f"Flax{word}", f"FlaxOptim{word}")), name)


def _places(node: Any, path: Path, group: Path, is_split: bool) -> Iterator[Place]:
    kind = _kind(node)
    if kind in kept_by():
        yield from _kept(node, path, group, is_split)
    elif kind == WEIGHT_NORM_STATE:
        for part in SPLIT:
            for param, leaf in _leaves(getattr(node, part)):
                source = ("state", "param_states", *param, part)
                yield Place((*path, part, *param), path, group, source, param, np.shape(leaf))
        yield from _places(node.inner_state, (*path, "inner_state"), group, is_split=True)
    elif kind in SCHEDULES:
        yield from (Place((*path, *below), path, group, STEP) for below, _ in _leaves(node))
    elif kind in INJECTED:
        yield from _injected(node, path, group, is_split)
    elif kind in WRAPPERS or _is_container(node):
        for key, child in _children(node):
            yield from _places(
                child, (*path, key), path if kind == MASKED_STATE else group, is_split
            )
    else:
        for below, leaf in _leaves(node):
            if leaf is not None:
                place = said(("opt_state", *path, *below))
                raise CheckpointError(
                    f"{place} of the new state is of {_called(kind)}, which no legacy optimizer had."
                )


def _called(kind: str) -> str:
    return f"the type {kind}" if kind else "no known type"


def _kept(node: Any, path: Path, group: Path, is_split: bool) -> Iterator[Place]:
    """The fields of a state that keeps something for each parameter, and may count the steps."""
    names = old_names(_kind(node))
    for field in node._fields:
        if field == COUNT:
            yield Place((*path, field), path, group, STEP)
            continue
        for below, leaf in _leaves(getattr(node, field)):
            part, param = (below[:1], below[1:]) if is_split else ((), below)
            kept = (
                "state",
                "param_states",
                *param,
                *(f"{word}_state" for word in part),
                names[field],
            )
            yield Place((*path, field, *below), path, group, kept, param, np.shape(leaf))


def _injected(node: Any, path: Path, group: Path, is_split: bool) -> Iterator[Place]:
    for field in node._fields:
        value, place = getattr(node, field), (*path, field)
        if field == COUNT:
            yield Place(place, path, group, STEP)
        elif field == HYPERPARAMS:
            yield from (Place((*place, *below), path, group, None) for below, _ in _leaves(value))
        else:
            yield from _places(value, place, group, is_split)


@cache
def kept_by() -> Mapping[str, LegacyOptimizer]:
    """The states of optax, and of what `rewrite` emits beside it, with a legacy optimizer that kept the same."""
    return {state: optimizer for optimizer in optimizers().values() for state in optimizer.kept_in}


@cache
def old_names(kind: str) -> Mapping[str, str]:
    """What a legacy optimizer called the fields of a state of optax."""
    return {new: old for old, new in kept_by()[kind].state.items()}


def _leaves(tree: Any) -> Iterator[tuple[Path, Any]]:
    """The leaves of a tree with their places in its state dict."""
    return leaves(serialization.to_state_dict(tree))


def _is_container(node: Any) -> bool:
    return isinstance(node, Mapping | list) or type(node) is tuple


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    """The children of a container or a named tuple, with their keys in a state dict."""
    if isinstance(node, Mapping):
        yield from ((str(key), child) for key, child in node.items())
    elif hasattr(node, "_fields"):
        yield from zip(node._fields, node, strict=True)
    else:
        yield from ((str(number), child) for number, child in enumerate(node))
