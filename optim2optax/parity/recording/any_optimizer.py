"""What is asked of any optimizer: a legacy one, a definition or a train state.

That is its kind, its parameters, its count and the leaves of its state.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from flax.traverse_util import flatten_dict

if TYPE_CHECKING:
    from collections.abc import Mapping

    Kind = tuple[tuple[str, tuple[int, ...]], ...]
    from collections.abc import Iterator


def averaged(state: Any, gradients: Any) -> Any:
    """The gradients that are applied.

    A legacy optimizer that was replicated by its own method averages them itself.
    """
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
    return _has(state, "optimizer_def", "target")


def has_params(state: Any) -> bool:
    """Whether this is a legacy optimizer or a train state; a definition alone has no parameters."""
    is_train_state = _has(state, "tx", "opt_state", "params")
    return is_train_state or _has(state, "optimizer_def", "target")


def _has(node: Any, *names: str) -> bool:
    return all(hasattr(node, name) for name in names)


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


LARGEST_TREE = 1_000_000
"""The most elements of parameters whose gradients are written whole, to be replayed."""


def kind_of(leaves: Mapping[str, Any]) -> Kind:
    """What distinguishes the parameters of different optimizers: paths and shapes."""
    shapes = [(leaf, tuple(jnp.shape(values))) for leaf, values in leaves.items()]
    return tuple(sorted(shapes))


def kind_from(facts: Mapping[str, Any]) -> Kind:
    """The kind in a record."""
    # JSON has lists in the place of tuples.
    pairs: list[Any] = facts["kind"]
    return tuple((leaf, tuple(shape)) for leaf, shape in pairs)


def is_small(kind: Kind) -> bool:
    """Whether parameters are so small that all of their gradients are written."""
    elements = sum(math.prod(shape) for _, shape in kind)
    return elements <= LARGEST_TREE


SAMPLED = 4096
"""About so many elements of a larger leaf are compared, the same ones each time."""

BESIDE_PARAMETERS = ("state", "opt_state", "step")
"""The fields of a legacy optimizer or a train state that have its state, and its count."""

NUMBERS = "biuf"
"""The kinds of NumPy's types that are compared: booleans, integers and floating-point numbers."""


def state_leaves(content: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of an optimizer's state dict beside its parameters, and its count, by paths."""
    for path, leaf in leaves_of_state_dict(content):
        is_state = path[0] in BESIDE_PARAMETERS
        # A key of `jax.random` of the new kind is no number.
        if is_state and leaf_type(leaf).kind in NUMBERS:
            yield path, _sampled(leaf)


def _sampled(leaf: Any) -> Any:
    size = math.prod(jnp.shape(leaf))
    stride = math.ceil(size / SAMPLED)
    return leaf if stride <= 1 else leaf.ravel()[::stride]


def leaves_of_state_dict(content: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of a state dict by their paths."""
    found = flatten_dict(content)  # type: ignore[no-untyped-call]
    return ((path, leaf) for path, leaf in found.items() if leaf is not None)


def leaf_type(leaf: Any) -> Any:
    """The dtype of a leaf, which may be traced, or a number."""
    if hasattr(leaf, "dtype"):
        return leaf.dtype
    return jnp.result_type(leaf)


def shape_of(leaf: Any) -> Any:
    """A leaf's shape and dtype, in the place of its values."""
    shape = jnp.shape(leaf)
    dtype = leaf_type(leaf)
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]
