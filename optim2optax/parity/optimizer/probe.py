"""What optimizers are probed with: parameters as models have them, and gradients of all sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import jax
import numpy as np
from flax.traverse_util import unflatten_dict
from numpy.typing import NDArray

from optim2optax.parity.judging.movement import PyTree


def probe_params(
    seed: int = 0, further: Sequence[str] = (), scalars: bool = True
) -> PyTree:
    """Parameters as models have them: nested, of every rank, some starting at zero.

    Their names set the scale of their gradients. `further` are paths of leaves to add, such as
    `encoder/kernel`; none is below another. `scalars` are leaves without an axis.
    """
    random = np.random.default_rng([seed, 0])
    leaves: dict[str, Any] = {
        "Dense_0/kernel": 0.3 * random.normal(size=(7, 5)),
        "Dense_0/bias": np.zeros(5),
        "Conv_0/kernel": 0.1 * random.normal(size=(3, 3, 2, 4)),
        "BatchNorm_0/scale": np.ones(6),
        "LayerNorm_0/scale": np.ones(3),
        "LayerNorm_0/bias": np.zeros(3),
        "Embed_0/embedding": 0.1 * random.normal(size=(128, 130)),
        "tiny/kernel": 0.01 * random.normal(size=(4, 3)),
        "huge/kernel": 10.0 * random.normal(size=(3, 4)),
        "unused/kernel": random.normal(size=(3, 2)),
    }
    if scalars:
        leaves["temperature"] = np.asarray(0.7)
    # With a generator of their own, further leaves do not change the usual ones.
    random = np.random.default_rng([seed, 3])
    for path in further:
        leaves[path] = 0.3 * random.normal(size=(4, 3))
    return unflatten_dict(leaves, sep="/")  # type: ignore[no-untyped-call]


def few_params(params: PyTree) -> PyTree:
    """The small ones of some parameters, for many steps."""

    def is_small(tree: PyTree) -> bool:
        sizes = map(np.size, jax.tree_util.tree_leaves(tree))
        return max(sizes) <= FEW

    return {name: tree for name, tree in params.items() if is_small(tree)}


def params_around(sizes: Sequence[int], seed: int = 0) -> PyTree:
    """Parameters whose dimensions are a size, one more and one less.

    That applies to their elements, their axes, and the elements along an axis.
    """
    random = np.random.default_rng([seed, 2])
    shapes = set(itertools.chain.from_iterable(map(_shapes_around, sizes)))
    params: dict[str, Any] = {}
    for shape in sorted(shapes):
        kernel = random.normal(size=shape)
        bias = random.normal(size=shape[-1:])
        name = "x".join(map(str, shape))  # 31x31
        params[name] = {"kernel": kernel, "bias": bias}
    return params


def _shapes_around(size: int) -> Iterator[tuple[int, ...]]:
    for near in (size - 1, size, size + 1):
        yield (near,)
        yield near, near
        if near <= MOST_AXES:
            yield (2,) * near


FEW = 1_000
MOST_AXES = 6

REMEMBERED = 2
"""The number of probes whose gradients are kept: those of the usual one are 16 MB."""

Shapes: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""The path and the shape of each leaf."""


def extreme_gradients(params: PyTree, steps: int, seed: int = 0) -> PyTree:
    """Gradients like the recorded ones, with extreme values from the third step on.

    They are infinity, NaN, 1e30, 1e-30 and exact zeros. Each leaf has one of them, in one element
    or in all, so that an effect of a leaf on another shows.
    """
    order = iter(itertools.cycle(EXTREMES))

    def with_extremes(leaf: NDArray[np.float64]) -> NDArray[np.float64]:
        value, is_everywhere = next(order)
        leaf = leaf.copy()
        flat = leaf.reshape(steps, -1)
        first = min(2, steps - 1)
        elements = slice(None) if is_everywhere else slice(0, 1)
        flat[first:, elements] = value
        return leaf

    return jax.tree_util.tree_map(
        with_extremes, recorded_gradients(params, steps, seed)
    )


EXTREMES = (
    (1e30, False),
    (0.0, True),
    (np.inf, False),
    (-np.inf, True),
    (np.nan, True),
    (1e-30, True),
    (-1e30, True),
    (1e-30, False),
    (np.nan, False),
)
"""A value that gradients take, and whether in all elements of a leaf or in one alone."""


def recorded_gradients(params: PyTree, steps: int, seed: int = 0) -> PyTree:
    """Make gradients that change scale and sign in every step, with zeros among them.

    Leaves with `tiny` in their path get gradients of about 1e-6, with `huge` of about 1e3, with
    `unused` only zeros.

    Returns:
        A tree like `params`, whose float64 leaves have a leading axis of steps.
    """
    paths_and_leaves, tree = jax.tree_util.tree_flatten_with_path(params)
    shapes = tuple(
        (jax.tree_util.keystr(path), np.shape(leaf)) for path, leaf in paths_and_leaves
    )
    return jax.tree_util.tree_unflatten(tree, _gradients(shapes, steps, seed))


@lru_cache(maxsize=REMEMBERED)
def _gradients(
    shapes: Shapes, steps: int, seed: int
) -> tuple[NDArray[np.float64], ...]:
    """The gradients of each leaf in order; all optimizers share them, so they are read-only."""
    random = np.random.default_rng([seed, 1])
    leaves = tuple(
        _gradients_of_leaf(random, name, shape, steps) for name, shape in shapes
    )
    for leaf in leaves:
        leaf.flags.writeable = False
    return leaves


def _gradients_of_leaf(
    random: np.random.Generator, name: str, shape: tuple[int, ...], steps: int
) -> NDArray[np.float64]:
    per_step = (steps, *(1 for _ in shape))
    values = random.normal(size=(steps, *shape))
    values *= 10.0 ** random.uniform(-1.5, 0.5, size=per_step)
    # Each element has a mean of its own, so that moments do not cancel.
    values += 0.3 * random.normal(size=shape)
    # Some elements have no gradient in a step, and some steps have none at all.
    values[random.random(size=values.shape) < 0.05] = 0.0
    silent = random.random(size=per_step) < 0.05
    # The old LAMB divides by zero there, and a leaf of NaN proves nothing.
    silent[0] = False
    values[silent.ravel()] = 0.0
    scales = (scale for part, scale in _GRADIENT_SCALES.items() if part in name)
    return values * next(scales, 1.0)


_GRADIENT_SCALES = {"tiny": 1e-6, "huge": 1e3, "unused": 0.0}
