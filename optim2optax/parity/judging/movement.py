"""The leaves of trees by their paths, and how far each moves.

That is what its errors are measured against. A leaf is judged by its own movement. There is one
exception, in a closed loop: a leaf that rounding alone moves, such as the bias ahead of a
BatchNorm, whose gradients cancel. Adam blows their rounding up, and each side has another one, so
that such a leaf is judged by the movement of the leaves beside it, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from optim2optax.checkpoints.state_dict_places import key_of

Name = TypeVar("Name")
PyTree: TypeAlias = Any

LeafTrajectories: TypeAlias = Mapping[str, NDArray[Any]]
"""Each leaf's values by its path, stacked along a leading axis of steps."""


def leaves_by_path(tree: PyTree) -> dict[str, NDArray[Any]]:
    """The leaves of a tree by paths such as `Dense_0/kernel`.

    The paths are the same for every kind of container.
    """
    return {name: np.asarray(leaf) for name, leaf in named_leaves(tree).items()}


def named_leaves(tree: PyTree) -> dict[str, Any]:
    """The same leaves as they are; they may be traced."""
    paths_and_leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {name_of(path): leaf for path, leaf in paths_and_leaves}


def name_of(path: Sequence[Any]) -> str:
    """A path of JAX as people read it."""
    return "/".join(map(key_of, path))


def stacked(steps: Sequence[Mapping[Name, NDArray[Any]]]) -> dict[Name, NDArray[Any]]:
    """The leaves of all steps, each stacked along a leading axis."""
    if not steps:
        return {}
    first = steps[0]
    # A scenario may yield other things from step to step.
    if any(leaves.keys() != first.keys() for leaves in steps):
        raise ValueError("the steps of one side do not all have the same leaves")
    return {leaf: np.stack([leaves[leaf] for leaves in steps]) for leaf in first}


def largest_per_step(values: NDArray[Any]) -> list[float]:
    """The largest element of each step."""
    rows = values.reshape(len(values), -1)
    # A leaf may have no elements.
    found: list[float] = rows.max(axis=1, initial=0.0).tolist()
    return found


def same_bits(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Whether two arrays of one type hold the same bits."""
    return before.dtype == after.dtype and before.tobytes() == after.tobytes()


ROUNDING_OF_GRADIENTS = 1e-12
"""A leaf whose gradients stay below this part of those beside it has none but rounding.

Gradients that cancel leave about 1e-16.
"""

ROUNDING_OF_MOVEMENT = 1e-7
"""The same of movement, where gradients are not known; it is the gate of a closed loop."""

EPSILON = float(np.finfo(np.float64).eps)

Rounding = Mapping[str, bool]
"""Of each leaf whose gradients are known, whether they are rounding alone."""


def movements(
    before: LeafTrajectories, start: LeafTrajectories, gate: float
) -> dict[str, float]:
    """How far each leaf gets from its start, in its largest element.

    It is at least so much that rounding of one unit in the last place, on each side and in each
    step, stays below the gate.
    """
    found: dict[str, float] = {}
    for leaf, values in before.items():
        moved = _moved(values, start[leaf])
        # Each of the two sides rounds once a step.
        least = 2 * len(values) * EPSILON / gate * largest(values)
        found[leaf] = max(moved, least)
    return found


def moved_by_rounding(
    before: LeafTrajectories, start: LeafTrajectories, known: Rounding
) -> dict[str, float]:
    """The leaves that rounding alone moves, by the movement of the leaves beside them.

    It is `known` of parameters by their paths; a leaf belongs to the one with the longest path that
    its own ends in. If nothing is known, the movement decides.
    """
    moved: dict[str, float] = {}
    for leaf, values in before.items():
        # A counter moves by whole numbers.
        if jnp.issubdtype(values.dtype, jnp.floating):
            moved[leaf] = _moved(values, start[leaf])
    beside = largest_beside(moved)
    by_movement = _small_beside_others(moved, ROUNDING_OF_MOVEMENT)

    def is_rounding(leaf: str) -> bool:
        if not known:
            return by_movement[leaf]
        # A scenario may yield `params/Dense_0/bias` of the parameter `Dense_0/bias`.
        names = [name for name in known if leaf == name or leaf.endswith(f"/{name}")]
        return bool(names) and known[max(names, key=len)]

    return {leaf: beside[leaf] for leaf in moved if is_rounding(leaf)}


def gradients_of_rounding(steps: Iterable[Mapping[str, float]]) -> dict[str, bool]:
    """Whether each leaf has no gradient but rounding, by the sizes of its gradients by step."""
    found: dict[str, float] = {}
    for sizes in steps:
        for leaf, size in sizes.items():
            found[leaf] = max(size, found.get(leaf, 0.0))
    return _small_beside_others(found, ROUNDING_OF_GRADIENTS)


def _small_beside_others(sizes: Mapping[str, float], part: float) -> dict[str, bool]:
    """Whether each size is less than a part of the largest one beside it, and more than zero."""
    beside = largest_beside(sizes)
    found: dict[str, bool] = {}
    for leaf, size in sizes.items():
        # A leaf that has no gradient, or does not move, is no rounding.
        found[leaf] = 0 < size < part * beside[leaf]
    return found


def largest_beside(sizes: Mapping[str, float]) -> dict[str, float]:
    """The largest size among the leaves of the same parent.

    For a leaf that is alone there, it is the largest of all.
    """
    siblings: dict[str, list[float]] = {}
    for leaf, size in sizes.items():
        siblings.setdefault(_parent(leaf), []).append(size)
    everywhere = max(sizes.values(), default=0.0)
    found: dict[str, float] = {}
    for leaf in sizes:
        beside = siblings[_parent(leaf)]
        found[leaf] = max(beside) if len(beside) > 1 else everywhere
    return found


def _parent(leaf: str) -> str:
    return leaf.rpartition("/")[0]


def _moved(values: NDArray[Any], start: NDArray[Any]) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return largest(values.astype(np.float64) - start)


def largest(values: NDArray[Any]) -> float:
    """The largest finite magnitude."""
    sizes = np.abs(values).astype(np.float64)
    return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
