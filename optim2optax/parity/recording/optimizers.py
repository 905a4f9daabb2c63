"""What is asked of any optimizer: a legacy one, a definition or a train state.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

from typing import Any

import jax


def averaged(state: Any, gradients: Any, new: Any = None) -> Any:
    """The gradients that are applied.

    A legacy optimizer that was replicated by its own method averages them itself.
    """
    del new
    # optimizer = optimizer_def.create(params).replicate()
    definition = getattr(state, "optimizer_def", None)
    axis: str | None = getattr(definition, "axis_name", None)
    if axis is None:
        return gradients
    return jax.lax.pmean(gradients, axis)  # type: ignore[no-untyped-call]


def is_legacy(state: Any) -> bool:
    """Whether this is an optimizer or a definition of `flax.optim`, or of a copy of it.

    A definition that keeps its interface in the new code has an `update`, as a transformation of
    optax does.
    """
    is_definition = hasattr(state, "apply_gradient") and hasattr(state, "init_state")
    if is_definition:
        return not hasattr(state, "update")
    return hasattr(state, "optimizer_def") and hasattr(state, "target")


def params(state: Any) -> Any:
    """The parameters of a legacy optimizer or of a train state."""
    if hasattr(state, "target"):
        return state.target
    return state.params


def count(state: Any) -> Any:
    """The steps taken."""
    if hasattr(state, "target"):
        return steps_taken(state.state)
    return state.step


def steps_taken(state: Any) -> Any:
    """The count in the state of a definition.

    A MultiOptimizer has one in the state of each of its optimizers, all with the same value.
    """
    if hasattr(state, "step"):
        return state.step
    return state[0].step
