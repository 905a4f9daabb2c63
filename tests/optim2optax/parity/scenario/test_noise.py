"""What rounding explains in a closed loop, and what it does not."""

from pathlib import Path
from typing import Any

import pytest

from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.scenario.scenario import run_both_loops
from tests.optim2optax.parity.scenario.sides import written

BEFORE = """
import jax
import jax.numpy as jnp
from flax import optim


def loss(params, x):
    return jnp.mean({loss})


@jax.jit
def train_step(optimizer, x):
    grad = jax.grad(loss)(optimizer.target, x)
    return optimizer.apply_gradient(grad)


def create(params):
    return optim.Momentum({rate}, beta=0.9).create(params)
"""
AFTER = """
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


def loss(params, x):
    return jnp.mean({loss})


@jax.jit
def train_step(state, x):
    grad = jax.grad(loss)(state.params, x)
    grad = jax.tree_util.tree_map(lambda g: {factor} * g, grad)
    return state.apply_gradients(grads=grad)


def create(params):
    return TrainState.create(apply_fn=None, params=params, tx=optax.sgd({rate}, momentum=0.9))
"""
SCENARIO = """
import jax.numpy as jnp


def run(module):
    state = module.create({{"w": jnp.linspace(-1.0, 1.0, 8)}})
    for step in range({steps}):
        state = module.train_step(state, jnp.linspace(0.5, 2.0, 8))
        yield state
"""
SMOOTH = "(params['w'] * x - 1.0) ** 2"
CHAOTIC = "jnp.cos(params['w'] * x)"


def compared(
    folder: Path, loss: str, rate: float, factor: str, steps: int = 40
) -> Comparison:
    """The closed loop of a program whose new side takes its gradients times a factor."""
    new = loss.replace("apply_gradient(", "apply_gradients(grads=")
    new = new.replace(".target", ".params")
    told = {"rate": rate, "factor": factor, "steps": steps}
    before = BEFORE.format(loss=loss, **told)
    after = AFTER.format(loss=new, **told)
    sides = written(folder, SCENARIO.format(**told), before, after)
    return run_both_loops(*sides)[0]


INNER = (
    "create({'w': params['w']}).apply_gradient({'w': params['w'] * x}).target['w'] ** 2"
)
"""A step that is differentiated through, and may round."""

FOUND: dict[str, tuple[tuple[Any, ...], Verdict]] = {
    "rounding": ((SMOOTH, 0.01, "(1 + 2**-52)"), Verdict.EQUIVALENT),
    "a fault below the gate": ((SMOOTH, 0.01, "1.0000001"), Verdict.DIFFERENT),
    "a fault far below it": ((SMOOTH, 0.01, "(1 - 1e-9)"), Verdict.DIFFERENT),
    "a fault within a step": ((INNER, 0.01, "1.0000001"), Verdict.DIFFERENT),
    "what chaos makes of rounding": ((CHAOTIC, 60.0, "(1 + 2**-52)", 80), Verdict.NOTHING_PROVEN),
    "a fault ahead of chaos": ((CHAOTIC, 60.0, "1.0001", 80), Verdict.DIFFERENT),
}  # fmt: skip


@pytest.mark.parametrize(("program", "expected"), FOUND.values(), ids=FOUND)
def test_verdicts(program: tuple[Any, ...], expected: Verdict, tmp_path: Path) -> None:
    found = compared(tmp_path, *program)
    assert found.verdict is expected, found
    is_chaotic = program[0] == CHAOTIC
    assert (found.error < 1e-6) != is_chaotic
    if expected is Verdict.NOTHING_PROVEN:
        assert "Rounding alone takes this program" in found.remarks[0]


BESIDE = """

def create(params):
    return TrainState.create(apply_fn=None, params=params | {{"v": params["w"]}}, tx=optax.sgd(60.0, momentum=0.9))


def loss(params, x):
    return jnp.mean(jnp.cos(params["w"] * x)) + {factor} * jnp.mean((0.01 * params["v"] - 1.0) ** 2)
"""


@pytest.mark.parametrize("factor", ["1.0", "1.001"])
def test_chaos_in_one_leaf_hides_no_fault_in_another(
    tmp_path: Path, factor: str
) -> None:
    made = 'TrainState.create(apply_fn=None, params=params | {"v": params["w"]}, tx=optax.sgd(60.0, momentum=0.9))'
    legacy = 'optim.Momentum(60.0).create(params | {"v": params["w"]})'
    old = BESIDE.format(factor=1.0).replace(made, legacy)
    before = BEFORE.format(loss=0, rate=0) + old
    after = AFTER.format(loss=0, rate=0, factor="(1 + 2**-52)")
    after += BESIDE.format(factor=factor)
    sides = written(tmp_path, SCENARIO.format(steps=80), before, after)
    [found, _] = run_both_loops(*sides)
    is_wrong = factor != "1.0"
    expected = Verdict.DIFFERENT if is_wrong else Verdict.NOTHING_PROVEN
    assert found.verdict is expected, found
