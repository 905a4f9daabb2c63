"""The leaves of an optimizer's state, as they are recorded.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from flax import serialization

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLED = 4096
"""About so many elements of a larger leaf are written, the same ones each time."""

BESIDE_PARAMETERS = ("state", "opt_state", "step")
"""The fields of a legacy optimizer or a train state that have its state, and its count."""

NUMBERS = "biuf"
"""The kinds of NumPy's types that are written: booleans, integers and floating-point numbers."""


def state_leaves(state: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of an optimizer's state dict beside its parameters, and its count, by paths."""
    content = serialization.to_state_dict(state)
    for path, leaf in leaves_of_state_dict(content):
        field = path[0]
        is_state = field in BESIDE_PARAMETERS
        # A key of `jax.random` of the new kind is no number.
        if is_state and leaf_type(leaf).kind in NUMBERS:
            yield "/".join(path), _sampled(leaf)


def _sampled(leaf: Any) -> Any:
    size = math.prod(jnp.shape(leaf))
    stride = math.ceil(size / SAMPLED)
    return leaf if stride <= 1 else leaf.ravel()[::stride]


def leaves_of_state_dict(
    tree: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of a state dict by their paths."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves_of_state_dict(value, (*path, key))
    elif tree is not None:
        yield path, tree


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
