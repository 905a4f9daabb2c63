"""Clipping at its edges, trained before and after: in float32, and in float64 as users have it."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

from optim2optax.legacy import legacy_flax
from optim2optax.precision import precise
from tests.generated.properties import GATE, migrated, outcome, parameters


@contextmanager
def wide() -> Iterator[None]:
    """What `jax_enable_x64` does, and no more."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def assert_trains_alike(program: str) -> None:
    """A program trains like before, in both precisions; what is not a number is so in both."""
    result = migrated(program.encode())
    assert {site.status for site in result.sites} == {"rewritten"}
    start: Any = parameters()
    for context, gate in ((precise(wide=False), 1e-5), (wide(), GATE)):
        with legacy_flax(), context:
            before, after = outcome(program.encode()), outcome(result.after)
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            for name in start:
                farthest = np.max(np.abs(np.asarray(old[name]) - start[name]))
                movement = float(np.nan_to_num(farthest, posinf=0.0))
                limit = gate * max(movement, 1e-3)
                np.testing.assert_allclose(new[name], old[name], rtol=0, atol=limit)


CLIPPED = """\
import jax
import jax.numpy as jnp
from flax import optim


def loss_fn(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def run(params, batches, limit={limit}):
    params = jax.tree_util.tree_map(jnp.asarray, params)
    found = []
    optimizer = optim.GradientDescent(0.1).create(params)
    for number, (x, y) in enumerate(batches):
        grads = jax.grad(loss_fn)(optimizer.target, x, y)
        grads = jax.tree_util.tree_map(lambda g: g * {factors}[number], grads)
        norm = jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grads)]))
        grads = jax.tree_util.tree_map(lambda g: {scaled}, grads)
        optimizer = optimizer.apply_gradient(grads)
        found.append(optimizer.target)
    return found
"""
FACTORS = [
    "(1.0, 0.0, 1e-30, 1e30, 1.0, jnp.inf)",
    "(1.0, 0.0, 1e-3, 1e-20, jnp.nan, 1.0)",
]
"""What the gradients of each step are multiplied by."""

LIMITS = ("0.5", "0.0", "-1.0", "float('inf')", "2")
EDGES = [
    pytest.param(*edge, marks=[pytest.mark.thorough] if number > 2 else [])
    for number, edge in enumerate(product(LIMITS, FACTORS))
]

SCALED = {
    "the least": "g * jnp.minimum(1.0, limit / norm)",
    "a choice": "jnp.where(norm < limit, g, g / norm * limit)",
    "a choice with the limit": "jnp.where(norm <= limit, g, g * (limit / norm))",
    "the largest": "g * (limit / jnp.maximum(norm, limit))",
    "a quotient": "g / jnp.maximum(1.0, norm / limit)",
    "by value": "jnp.clip(g, -limit, limit)",
}


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize(("limit", "factors"), EDGES)
@pytest.mark.parametrize("scaled", SCALED.values(), ids=SCALED)
def test_clipping_at_its_edges(scaled: str, limit: str, factors: str) -> None:
    assert_trains_alike(CLIPPED.format(limit=limit, factors=factors, scaled=scaled))
