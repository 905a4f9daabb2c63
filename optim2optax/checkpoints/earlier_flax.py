"""Layouts that differ from those of Flax 0.5.3.

Up to 0.3.2, `MultiOptimizer` kept a list of states, one for each group, in the order of its parameters' paths; from 0.3.3 on, one
state for all. The parameters of a model of `flax.nn`, which 0.4 removed, were below a key of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.contents import has_groups
from optim2optax.checkpoints.flax_msgpack import Array, Tree
from optim2optax.checkpoints.places import Path, by_new_field, field_of, leaves

MODEL = "params"

Shape = tuple[int, ...]
Kept = dict[Path, dict[str, Shape]]
"""The shapes of what a state of optax keeps for each parameter of a group, by its fields."""


def renewed(old: Mapping[str, Tree], new: Mapping[str, Any]) -> Mapping[str, Tree]:
    """What a checkpoint has of an optimizer, as Flax 0.5.3 would have stored it.

    Args:
      old: its target and its state.
      new: the parameters and the state of optax that go on from it.

    Raises:
      CheckpointError: if it cannot be told which parameters a group had.
    """
    target, state = old["target"], old["state"]
    is_model = isinstance(target, dict) and {*target} == {MODEL} and MODEL not in new["params"]
    if is_model:
        target = target[MODEL]
    if has_groups(state):
        return {
            "target": target,
            "state": _one_state(state, _kept(new["opt_state"], {path for path, _ in leaves(target)})),
        }
    if is_model and isinstance(state["param_states"], dict):
        state = {**state, "param_states": state["param_states"].get(MODEL, {})}
    return {"target": target, "state": state}


def _kept(opt_state: Any, params: Collection[Path]) -> list[Kept]:
    """What is kept for parameters, group by group."""
    found: dict[Path, Kept] = defaultdict(lambda: defaultdict(dict))
    for path, place in leaves(opt_state):
        part = field_of(path, params)
        if part is not None:
            (*group, field), param = part
            found[tuple(group)][param][field] = np.shape(place)
    return list(found.values())


def _one_state(groups: Mapping[str, Tree], kept: list[Kept]) -> Mapping[str, Tree]:
    states: dict[str, Any] = {}
    for name, group in groups.items():
        ours = [group["param_states"][str(number)] for number in range(len(group["param_states"]))]
        if not any(ours):  # it keeps nothing
            continue
        fitting = [one for one in kept if _fits(ours, one)]
        if len(fitting) != 1:
            raise CheckpointError(
                f"`state/{name}` is a group of {len(ours)} parameters, whose names Flax up to 0.3.2 did not store, and "
                f"{len(fitting) or 'none'} of the new state's groups may be it."
            )
        for path, state in zip(sorted(fitting[0]), ours, strict=True):
            _set(states, path, state)
    return {"step": groups["0"]["step"], "param_states": states}


def _fits(states: list[Mapping[str, Tree]], kept: Kept) -> bool:
    return len(states) == len(kept) and all(
        isinstance(state, dict)
        and len(state) == len(kept[path])
        and all(
            any(_shape(state.get(old)) == shape for old in by_new_field()[new]) for new, shape in kept[path].items()
        )
        for path, state in zip(sorted(kept), states, strict=True)
    )


def _shape(value: Tree) -> Shape | None:
    return value.shape if isinstance(value, Array) else None


def _set(tree: dict[str, Any], path: Path, value: Tree) -> None:
    *above, last = path
    for key in above:
        tree = tree.setdefault(key, {})
    tree[last] = value
