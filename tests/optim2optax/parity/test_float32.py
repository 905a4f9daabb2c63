"""Programs whose parameters are in float32, as NumPy made them, and transformations that accumulate in it."""

from pathlib import Path

import pytest

from codemods import Source, migrate
from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.scenario.scenario import run_both_loops
from tests.optim2optax.parity.scenario.sides import written

pytestmark = pytest.mark.usefixtures("legacy_wheel")

BEFORE = """
import jax
import jax.numpy as jnp
import numpy as np
from flax import optim


def create():
    params = {"w": np.linspace(-1.0, 1.0, 8, dtype=np.float32)}
    return optim.Adam(0.05, beta1=0.8).create(params)


@jax.jit
def step(optimizer, x):
    grads = jax.grad(lambda params: jnp.mean((params["w"] * x - 1.0) ** 2))(optimizer.target)
    return optimizer.apply_gradient(grads, learning_rate=0.05 / (1 + optimizer.state.step))


def main():
    optimizer = create()
    for key in jax.random.split(jax.random.PRNGKey(0), 12):
        optimizer = step(optimizer, jax.random.normal(key, (8,)))
        yield optimizer


if __name__ == "__main__":
    for _ in main():
        pass
"""
SCENARIO = "def run(module):\n    yield from module.main()\n"
INSISTING = BEFORE.replace(
    "    grads = jax",
    "    assert optimizer.target['w'].dtype == np.float32\n    grads = jax",
)


def compared(folder: Path, before: str, after: str) -> Comparison:
    [found, _] = run_both_loops(*written(folder, SCENARIO, before, after))
    return found


def migrated(before: str) -> str:
    [result] = migrate([Source("train.py", before.encode())])
    return result.after.decode()


def test_parameters_that_numpy_made(tmp_path: Path) -> None:
    after = migrated(BEFORE)
    assert "b1=0.8" in after
    wrong = after.replace("b1=0.8", "b1=0.8000001")
    for new, expected in ((after, Verdict.EQUIVALENT), (wrong, Verdict.DIFFERENT)):
        found = compared(tmp_path, BEFORE, new)
        assert found.verdict is expected, found


def test_a_program_that_insists_on_float32(tmp_path: Path) -> None:
    found = compared(tmp_path, INSISTING, migrated(INSISTING))
    assert found.verdict is not Verdict.DIFFERENT, found


SUMMED = """
def main():
    optimizer = create()
    for keys in jax.random.split(jax.random.PRNGKey(0), 12):
        first, second = (gradient(optimizer.target, jax.random.normal(key, (8,))) for key in jax.random.split(keys))
        optimizer = optimizer.apply_gradient(jax.tree_util.tree_map(lambda a, b: (a + b) / 2, first, second))
        yield optimizer.target
"""
"""The mean of two gradients makes one step,"""

MULTI_STEPS = """
def main():
    params = {"w": jnp.linspace(-1.0, 1.0, 8)}
    tx = optax.MultiSteps(optax.adam(0.05), 2)
    update, state = jax.jit(tx.update), tx.init(params)
    for keys in jax.random.split(jax.random.PRNGKey(0), 12):
        for key in jax.random.split(keys):
            updates, state = update(gradient(params, jax.random.normal(key, (8,))), state, params)
            params = optax.apply_updates(params, updates)
        yield params
"""
"""and optax has a transformation for that."""

GRADIENT = """
import jax
import jax.numpy as jnp

gradient = jax.jit(jax.grad(lambda params, x: jnp.mean((params["w"] * x - 1.0) ** 2)))
"""


def test_multi_steps(tmp_path: Path) -> None:
    create = '\ndef create():\n    return optim.Adam(0.05).create({"w": jnp.linspace(-1.0, 1.0, 8)})\n'
    old = f"from flax import optim{GRADIENT}{create}{SUMMED}"
    found = compared(tmp_path, old, f"import optax{GRADIENT}{MULTI_STEPS}")
    assert found.verdict is Verdict.EQUIVALENT, found
