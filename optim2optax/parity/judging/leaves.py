"""The leaves of trees, by their paths, and over the steps of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

PyTree: TypeAlias = Any

LeafTrajectories: TypeAlias = Mapping[str, NDArray[Any]]
"""Each leaf's values by its path, stacked along a leading axis of steps."""

KEYS = ("key", "name", "idx")
"""The attributes by which JAX tells keys of a dict, names of fields and places in a sequence."""


def leaves_by_path(tree: PyTree) -> dict[str, NDArray[Any]]:
    """The leaves of a tree by paths such as `Dense_0/kernel`.

    The paths are the same for every kind of container.
    """
    paths_and_leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {name_of(path): np.asarray(leaf) for path, leaf in paths_and_leaves}


def name_of(path: Sequence[Any]) -> str:
    """A path of JAX as people read it."""
    return "/".join(map(_name, path))


def _name(key: Any) -> str:
    """One key of a path: of a dict, an attribute or a sequence."""
    # DictKey(key="kernel"), GetAttrKey(name="mu"), SequenceKey(idx=0)
    field = next(field for field in KEYS if hasattr(key, field))
    return str(getattr(key, field))


def stacked(trees: Sequence[PyTree]) -> LeafTrajectories:
    """The leaves of the trees of all steps, each stacked along a leading axis."""
    steps = [leaves_by_path(tree) for tree in trees]
    if not steps:
        return {}
    first = steps[0]
    # A scenario may yield other things from step to step.
    if any(leaves.keys() != first.keys() for leaves in steps):
        raise ValueError("the steps of one side do not all have the same leaves")
    found: dict[str, NDArray[Any]] = {}
    for leaf in first:
        found[leaf] = np.stack([leaves[leaf] for leaves in steps])
    return found


def largest_per_step(values: NDArray[Any]) -> list[float]:
    """The largest element of each step."""
    rows = values.reshape(len(values), -1)
    # A leaf may have no elements.
    largest: list[float] = rows.max(axis=1, initial=0.0).tolist()
    return largest


def same_bits(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Whether two arrays of one type hold the same bits."""
    return before.dtype == after.dtype and before.tobytes() == after.tobytes()
