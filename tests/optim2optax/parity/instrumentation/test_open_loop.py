"""Of a command, new transformations are compared on the old side's gradients, too, and so is what they keep beside parameters."""

from pathlib import Path

import pytest

from optim2optax.parity.instrumentation.replays import OTHER_GRADIENTS
from optim2optax.parity.judging.comparison import Verdict
from tests.optim2optax.parity.command.commands import compared, migrated
from tests.optim2optax.parity.differences import SAME, first_difference

pytestmark = pytest.mark.usefixtures("legacy_wheel")

CHAOTIC = """
import jax
import jax.numpy as jnp
from flax import optim


@jax.jit
def train_step(optimizer, x, learning_rate):
    grad = jax.grad(lambda params: jnp.mean(jnp.cos(params["w"] * x)))(optimizer.target)
    return optimizer.apply_gradient(grad, learning_rate=learning_rate)


optimizer = optim.Momentum(beta=0.9).create({"w": jnp.linspace(-1.0, 1.0, 8)})
for step in range(60):
    optimizer = train_step(optimizer, jnp.linspace(0.5, 2.0, 8), 500.0 - step)
"""

STEADY = """
import jax
import jax.numpy as jnp
from flax import optim

optimizer = optim.Adam(0.1, weight_decay=1e-3).create({"w": jnp.linspace(-1.0, 1.0, 8), "b": [jnp.zeros(())]})
for step in range(12):
    grad = jax.tree_util.tree_map(lambda leaf: jnp.cos(leaf + step), optimizer.target)
    optimizer = optimizer.apply_gradient(grad)
"""


def test_a_wrong_rule_of_a_chaotic_program(tmp_path: Path) -> None:
    found = compared(tmp_path, CHAOTIC, ("decay=0.9", "decay=0.9000001"))
    assert found.verdict is Verdict.DIFFERENT, found
    assert "open loop" in found.remarks[-1]


@pytest.mark.thorough
def test_the_states_agree_as_well(tmp_path: Path) -> None:
    found = compared(tmp_path, STEADY)
    assert found.verdict in SAME, found
    [note] = found.remarks
    assert note.startswith("In open loop: 12 steps, error over movement ")
    assert {leaf.leaf for leaf in found.leaves} >= {"w", "b/0", *KEPT}


KEPT = {"step", "opt_state/0/mu/w", "opt_state/0/nu/b/0"}
"""Some of what is compared beside the parameters, by its path."""


def test_a_wrong_count_of_steps(tmp_path: Path) -> None:
    """Nothing depends on it yet; what is trained on from there, or a schedule, does."""
    wrong = ("grads=grad)", "grads=grad).replace(step=2 * step + 1)")
    found = compared(tmp_path, STEADY, wrong)
    first = first_difference(found)
    assert (first.leaf, first.step, found.steps) == ("step", 2, 12)
    assert {leaf.leaf for leaf in found.leaves} >= KEPT
    told = "The parameters agree; what the optimizer keeps beside them does not."
    assert told in found.remarks


CLIPPED = (
    "    grad = jax.tree_util.tree_map(lambda leaf: jnp.clip(leaf, -0.5, 0.5), grad)\n"
)


def test_a_new_side_that_gives_its_optimizer_other_gradients(tmp_path: Path) -> None:
    """It clips them in the transformation; the old side does so by hand."""
    old = STEADY.replace("    optimizer = ", f"{CLIPPED}    optimizer = ")
    assert "optax.clip(0.5)" in migrated(old)
    found = compared(tmp_path, old)
    assert (found.verdict, found.steps) == (Verdict.EQUIVALENT, 12), found
    assert found.remarks == (
        f"In open loop, the optimizer of b/0 and 1 more cannot be compared: {OTHER_GRADIENTS}.",
    )


ACCUMULATED = """\
    if step % 2 == 0:
        half = grad
    else:
        grad = jax.tree_util.tree_map(lambda first, second: (first + second) / 2, half, grad)
        optimizer = optimizer.apply_gradient(grad)
"""


def test_gradients_that_the_transformation_accumulates(tmp_path: Path) -> None:
    """By default `optax.MultiSteps` does so in float32, which is no difference either."""
    program = STEADY.replace("range(12)", "range(24)")
    head = program.partition("    optimizer = optimizer.apply")[0]
    new = ACCUMULATED.replace("_gradient(", "_gradients(grads=")
    tx = "optax.adamw(0.1, weight_decay=1e-3)"
    found = compared(
        tmp_path,
        head + ACCUMULATED,
        (new, "    optimizer = optimizer.apply_gradients(grads=grad)\n"),
        (f"tx={tx}", f"tx=optax.MultiSteps({tx}, 2)"),
    )
    assert (found.verdict, found.steps) == (Verdict.EQUIVALENT, 12), found
    assert found.remarks[0] == "The state of the optimizer was not compared."
