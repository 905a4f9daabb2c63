"""Layouts that differ from those of Flax 0.5.3.

Up to 0.3.2, `MultiOptimizer` kept a list of states, one for each group, in the order of its
parameters' paths; from 0.3.3 on, one state for all. The parameters of a model of `flax.nn`, which
0.4 removed, were below a key of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from flax import serialization
from flax.traverse_util import unflatten_dict

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.contents import has_groups
from optim2optax.checkpoints.correspondence import StatePlace, has_interface, places_of
from optim2optax.checkpoints.flax_msgpack import Tree
from optim2optax.checkpoints.state_dict_places import Path, leaves

MODEL = "params"
PLACEHOLDER = (1,)
"""The shape of the placeholder in Adafactor for an average that it does not keep."""


def renewed(
    old: Mapping[str, Tree], new: Mapping[str, Any], tx: Any
) -> Mapping[str, Tree]:
    """The state dict of an optimizer in a checkpoint, as Flax 0.5.3 would have stored it.

    Args:
      old: its target and its state.
      new: the parameters and the state of optax that go on from it.
      tx: their transformation, if it is known.

    Raises:
      CheckpointError: if the parameters of a group are ambiguous.
    """
    target = old["target"]
    state = old["state"]
    params: Any = serialization.to_state_dict(new["params"])
    # {"target": {"params": {"dense": …}}}, of flax.optim.Adam().create(flax.nn.Model(…))
    is_wrapped = isinstance(target, dict) and {*target} == {MODEL}
    # flax.linen has such a key, too: then the new params have it
    is_still_wrapped = isinstance(params, dict) and MODEL in params
    is_model = is_wrapped and not is_still_wrapped
    if is_model:
        target = target[MODEL]
    if has_groups(state):
        # a definition that keeps its interface keeps the legacy state: there is no state of optax
        places = [] if has_interface(tx) else places_of(new["opt_state"])
        kept = _kept_shapes(places, dict(leaves(target)))
        return {"target": target, "state": _one_state(state, kept)}
    if is_model and isinstance(state["param_states"], dict):
        state = {**state, "param_states": state["param_states"].get(MODEL, {})}
    return {"target": target, "state": state}


Shape = tuple[int, ...]
Kept = dict[Path, dict[str, Shape]]
"""The shapes of what the optimizer of a group keeps for each of its parameters, by field."""


def _kept_shapes(places: Sequence[StatePlace], params: Collection[Path]) -> list[Kept]:
    """The shapes of what is kept for parameters, group by group."""
    found: dict[Path, Kept] = {}
    for place in places:
        # counts are of no parameter, and what is injected was nothing before
        if place.param is None or place.source is None:
            continue
        if place.param in params:
            group = found.setdefault(place.group, {})
            group.setdefault(place.param, {})[place.source[-1]] = place.shape
    return list(found.values())


def _one_state(groups: Mapping[str, Tree], kept: list[Kept]) -> Mapping[str, Tree]:
    """One state for the parameters of all groups."""
    states: dict[Path, Any] = {}
    for name, group in groups.items():
        numbered = group["param_states"]
        old = [numbered[str(number)] for number in range(len(numbered))]
        if not any(old):  # GradientDescent keeps nothing for a parameter
            continue
        fitting = [shapes for shapes in kept if _fits(old, shapes)]
        if len(fitting) != 1:
            raise CheckpointError(
                f"`state/{name}` is a group of {len(old)} parameters, "
                "whose names Flax up to 0.3.2 did not store, and "
                f"{len(fitting) or 'none'} of the new state's groups may be it."
            )
        # the first state is that of the first path, and so on
        states |= zip(sorted(fitting[0]), old, strict=True)
    nested = unflatten_dict(states)  # type: ignore[no-untyped-call]
    return {"step": _one_step(groups), "param_states": nested}


def _one_step(groups: Mapping[str, Tree]) -> Tree:
    """The step that all groups have."""
    first, *others = [group["step"] for group in groups.values()]
    if not all(np.array_equal(first, step) for step in others):
        raise CheckpointError(
            "`state` has groups with different steps, and the new state counts them as one."
        )
    return first


def _fits(states: list[Mapping[str, Tree]], kept: Kept) -> bool:
    """Whether the states of a group can belong to the parameters with these shapes."""
    if len(states) != len(kept):
        return False
    pairs = zip(sorted(kept), states, strict=True)
    return all(
        isinstance(state, dict) and _has_shapes(state, kept[path])
        for path, state in pairs
    )


def _has_shapes(state: Mapping[str, Tree], shapes: Mapping[str, Shape]) -> bool:
    """Whether a legacy state of a parameter has fields of these shapes, and nothing more."""
    if not all(_shape(state.get(field)) == shape for field, shape in shapes.items()):
        return False
    rest = [value for field, value in state.items() if field not in shapes]
    others = [value for value in rest if value is not None]
    if not others:
        return True
    # Adafactor has placeholders for the averages that it does not keep
    return "v_row" in shapes and all(_shape(value) == PLACEHOLDER for value in others)


def _shape(value: Tree) -> Shape | None:
    return value.shape if isinstance(value, np.ndarray) else None
