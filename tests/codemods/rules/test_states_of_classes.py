"""A class of the program's own and the states that it makes become one, whether anything in view makes an instance or not."""

from pathlib import Path

import pytest

from tests.codemods.programs import migrated, result_of
from tests.codemods.running import assert_alike, outcome

OWN = """
import flax
import jax
import jax.numpy as jnp
from flax import struct


@struct.dataclass
class HyperParams:
    learning_rate: float


@struct.dataclass
class Momentum:
    momentum: jax.Array


class Own(flax.optim.OptimizerDef):
    def __init__(self, learning_rate=None):
        super().__init__(HyperParams(learning_rate))

    def init_param_state(self, param):
        return Momentum(jnp.zeros_like(param))

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        new = 0.9 * state.momentum + grad
        return param - hyper_params.learning_rate * new, Momentum(new)
"""
STEP = """
    def apply_gradient(self, hyper_params, params, state, grads):
        grads = jax.tree_util.tree_map(lambda grad: grad / 2, grads)
        new_params, new_state = super().apply_gradient(hyper_params, params, state, grads)
        return new_params, {made}(new_state.step, new_state.param_states)
"""
CREATE = """
    def create(self, target, focus=None):
        return super().create(target)
"""
IN_CLASS = OWN + STEP.format(made="flax.optim.OptimizerState")
MORE = "\n\nclass More(Own):" + IN_CLASS.removeprefix(OWN)


@pytest.mark.parametrize(
    "text",
    [IN_CLASS + CREATE, OWN + CREATE + MORE],
    ids=["one class", "a derived class, of one with a `create`"],
)
def test_a_class_that_stays_keeps_its_states(text: str) -> None:
    result = result_of(text)
    assert not result.changed
    assert {site.status for site in result.sites} == {"unresolved"}


@pytest.mark.parametrize("suppressed", ["FO701", "FO703"])
def test_a_class_of_which_a_part_is_suppressed_stays(suppressed: str) -> None:
    part = {"FO701": ".OptimizerDef):", "FO703": "new_state.param_states)"}[suppressed]
    text = IN_CLASS.replace(part, f"{part}  # optim2optax: ignore")
    assert not result_of(text).changed


def test_a_state_that_no_class_makes_is_left() -> None:
    text = """
        def fresh(param_states):
            return optim.OptimizerState(0, param_states)
    """
    [site] = [site for site in result_of(text).sites if site.code == "FO907"]
    assert site.status == "unresolved"


MAIN = """
import jax
import jax.numpy as jnp
{imports}

from own import {name}


def run(params, gradients):
    optimizer = {made}
    grads = jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *gradients)

    def step(optimizer, grad):
        return optimizer.{step}, optimizer.{params}

    optimizer, trained = jax.lax.scan(step, optimizer, grads)
    return optimizer.{params}, trained
"""
LEGACY = {
    "imports": "",
    "made": "{name}(0.1).create(params)",
    "step": "apply_gradient(grad)",
    "params": "target",
}
TODAY = {
    "imports": "from flax.training.train_state import TrainState",
    "made": "TrainState.create(apply_fn=None, params=params, tx={name}(0.1))"
    ".replace(step=jnp.zeros([], jnp.int32))",
    "step": "apply_gradients(grads=grad)",
    "params": "params",
}
CLASSES = {
    "by its full name": IN_CLASS,
    "in a derived class": OWN + MORE,
    "of a derived optimizer": """
import flax
import jax
from flax.optim import momentum


class Own(flax.optim.Momentum):
    def init_param_state(self, param):
        return momentum._MomentumParamState(0.5 * param)
"""
    + STEP.format(made="flax.optim.OptimizerState"),
}


def main(name: str, parts: dict[str, str]) -> str:
    made = parts["made"].format(name=name)
    return MAIN.format(name=name, **{**parts, "made": made})


@pytest.mark.parametrize("text", CLASSES.values(), ids=CLASSES)
def test_a_class_of_which_nothing_in_view_makes_one(
    text: str, tmp_path: Path, legacy_wheel: Path
) -> None:
    """As in a file of optimizers that others import: its state has one type from step to step."""
    name = "More" if "class More" in text else "Own"
    before = {"own.py": text, "main.py": main(name, LEGACY)}
    after = {"own.py": migrated(text), "main.py": main(name, TODAY)}
    assert "flax.optim" not in after["own.py"]
    old = outcome(before, tmp_path / "before", legacy_wheel)
    assert_alike(old, outcome(after, tmp_path / "after"))
