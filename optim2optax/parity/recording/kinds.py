"""What distinguishes optimizers: the paths and shapes of their parameters.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

if TYPE_CHECKING:
    from collections.abc import Mapping

    Kind = tuple[tuple[str, tuple[int, ...]], ...]

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
