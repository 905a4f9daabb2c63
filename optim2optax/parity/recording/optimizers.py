"""What is asked of any optimizer: a legacy one, a definition or a train state.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    pass


def averaged(state: Any, gradients: Any, new: Any = None) -> Any:
    """The gradients that are applied.

    A legacy optimizer that was replicated by its own method averages them itself.
    """
    del new
    axis: str | None = getattr(getattr(state, "optimizer_def", None), "axis_name", None)
    return gradients if axis is None else jax.lax.pmean(gradients, axis)  # type: ignore[no-untyped-call]


def is_legacy(state: Any) -> bool:
    """Whether this is an optimizer or a definition of `flax.optim`, or of a copy of it.

    A definition that keeps its interface in the new code has an `update`, as a transformation of
    optax does.
    """
    if hasattr(state, "apply_gradient") and hasattr(state, "init_state"):
        return not hasattr(state, "update")
    return hasattr(state, "optimizer_def") and hasattr(state, "target")


def params(state: Any) -> Any:
    """The parameters of a legacy optimizer or of a train state."""
    return state.target if hasattr(state, "target") else state.params


def count(state: Any) -> Any:
    """The steps taken."""
    return steps_taken(state.state) if hasattr(state, "target") else state.step


def steps_taken(state: Any) -> Any:
    """The count in the state of a definition.

    A MultiOptimizer has one in the state of each of its optimizers, all with the same value.
    """
    return state.step if hasattr(state, "step") else state[0].step
