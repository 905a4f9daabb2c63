"""A program that insists on float32 runs in float32, and its updates alone are judged, in float64."""

from pathlib import Path

import pytest

from optim2optax.parity.command.verdict import IN_FLOAT32
from optim2optax.parity.judging.comparison import Verdict
from tests.optim2optax.parity.command.commands import compared

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
    assert (found.verdict, found.steps, found.remarks) == (
        Verdict.EQUIVALENT,
        12,
        (IN_FLOAT32,),
    ), found
    assert found.drift is not None
    assert found.drift < 1e-5


def test_a_rule_whose_fault_is_below_the_rounding_of_float32(tmp_path: Path) -> None:
    found = compared(
        tmp_path, FAILING, ("optax.adam(0.01)", "optax.adam(0.01, eps=1.1e-8)")
    )
    assert (found.verdict, found.remarks) == (Verdict.DIFFERENT, (IN_FLOAT32,)), found


@pytest.mark.thorough
def test_another_loss(tmp_path: Path) -> None:
    found = compared(tmp_path, FAILING, ("image - 0.5", "image - 0.51"))
    assert (found.verdict, found.remarks) == (Verdict.DIFFERENT, (IN_FLOAT32,)), found
