"""Where training went on from a checkpoint, against where it would have gone."""

from typing import Any

import jax
import numpy as np

GATE = 1e-11
"""Of each leaf's movement, in float64."""


def assert_near(params: Any, expected: Any, start: Any, gate: float = GATE) -> None:
    """Parameters are the expected ones, but for some of each leaf's movement since the start."""
    trees = (params, expected, start)
    for got, wanted, begun in zip(*map(jax.tree_util.tree_leaves, trees), strict=True):
        movement = np.max(np.abs(wanted - begun))
        assert np.max(np.abs(got - wanted)) <= gate * movement
