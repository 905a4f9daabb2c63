"""A program that insists on float32 runs in float32, and its updates alone are judged, in float64."""

from pathlib import Path

import pytest

from optim2optax.parity.command.verdict import IN_FLOAT32
from optim2optax.parity.judging.comparison import Verdict
from tests.optim2optax.parity.command.commands import compared
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("legacy_wheel")

KEEPING = """
import jax
import jax.numpy as jnp
import numpy as np
from flax import optim


@jax.jit
def train_step(optimizer, rows):
    def loss_fn(params):
        def add(total, row):
            image = jax.lax.conv(row, params["kernel"], (1, 1), "SAME")
            return total + jnp.mean((image - 0.5) ** 2), None

        loss, _ = jax.lax.scan(add, np.float32(0), rows)
        return loss

    return optimizer.apply_gradient(jax.grad(loss_fn)(optimizer.target))


rng = np.random.default_rng(0)
rows = rng.normal(size=(2, 1, 1, 8, 8)).astype(np.float32)
kernel = rng.normal(size=(1, 1, 3, 3)).astype(np.float32)
optimizer = optim.Adam(0.01).create({"kernel": kernel})
for _ in range(12):
    optimizer = train_step(optimizer, rows)
    assert all(leaf.dtype == np.float32 for leaf in jax.tree_util.tree_leaves(optimizer.target))
"""
FAILING = KEEPING.replace(
    "rng.normal(size=(1, 1, 3, 3)).astype(np.float32)", "jnp.full((1, 1, 3, 3), 0.1)"
)
"""In float64, its convolution and its loop would mix two precisions."""

LARGE = FAILING.replace(
    "return loss\n", 'return loss + 1e-3 * jnp.sum(params["table"] ** 2)\n'
).replace(
    '{"kernel": kernel}',
    '{"kernel": kernel, "table": rng.normal(size=(80, 80)).astype(np.float32)}',
)
"""Of its second leaf, only a sketch is kept."""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(FAILING, id="fails in float64", marks=pytest.mark.thorough),
        pytest.param(KEEPING, id="keeps float32"),
        pytest.param(LARGE, id="has a large leaf", marks=pytest.mark.thorough),
    ],
)
def test_a_right_program(program: str, tmp_path: Path) -> None:
    found = compared(tmp_path, program)
    assert (found.verdict, found.steps) == (Verdict.EQUIVALENT, 12), found
    assert found.remarks == (IN_FLOAT32,)
    assert found.drift is not None
    assert found.drift < 1e-5


WRONG = {
    "a rule whose fault is below the rounding of float32": ("optax.adam(0.01)", "optax.adam(0.01, eps=1.1e-8)"),
    "another loss": ("image - 0.5", "image - 0.51"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), thinned(WRONG, next(iter(WRONG))))
def test_a_wrong_program(old: str, new: str, tmp_path: Path) -> None:
    found = compared(tmp_path, FAILING, (old, new))
    assert (found.verdict, found.remarks) == (Verdict.DIFFERENT, (IN_FLOAT32,)), found
