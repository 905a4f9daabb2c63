"""Yogi, as people had it in a copy of their own: what it becomes, and that it is the same."""

from __future__ import annotations

from typing import Any

import flax
import jax.numpy as jnp
import numpy as np
import pytest

from codemods.model import Form
from optim2optax.legacy import legacy_optim
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.optimizer.same_function import compare_transformations
from tests.codemods.optimizers.conversion import converted, transformation
from tests.codemods.programs import migrated

PROGRAM = """
    from flax import optim

    def train(params, batch):
        optimizer = optim.Yogi(1e-3, beta1=0.8).create(params)
        return optimizer.apply_gradient(gradient(optimizer.target, batch))
    """


def test_the_optimizer_migrates() -> None:
    assert "tx=optax.yogi(1e-3, b1=0.8)" in migrated(PROGRAM)


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("optim.Yogi(0.1)", "optax.yogi(0.1)"),
        ("optim.Yogi(0.1, 0.8, 0.99, 1e-4)", "optax.yogi(0.1, b1=0.8, b2=0.99, eps=1e-4)"),
    ],
)  # fmt: skip
def test_its_constructor(source: str, after: str) -> None:
    assert converted(source) == after


@flax.struct.dataclass
class HyperParams:
    learning_rate: Any
    beta1: float
    beta2: float
    eps: float


@flax.struct.dataclass
class State:
    grad_ema: Any
    grad_sq_ema: Any


def legacy(**numbers: float) -> Any:
    """An own definition, of the class that it had."""
    with legacy_optim() as optim:

        class Yogi(optim.OptimizerDef):  # type: ignore[name-defined, misc]
            def init_param_state(self, param: Any) -> State:
                return State(jnp.full_like(param, 1e-6), jnp.full_like(param, 1e-6))

            def apply_param_gradient(
                self,
                step: Any,
                hyper_params: HyperParams,
                param: Any,
                state: State,
                grad: Any,
            ) -> tuple[Any, State]:
                beta1, beta2 = hyper_params.beta1, hyper_params.beta2
                squared = jnp.square(grad)
                ema = beta1 * state.grad_ema + (1 - beta1) * grad
                signed = jnp.sign(state.grad_sq_ema - squared)
                squares = state.grad_sq_ema - (1 - beta2) * signed * squared
                steps = jnp.asarray(step + 1, param.dtype)
                mean, spread = ema / (1 - beta1**steps), squares / (1 - beta2**steps)
                change = mean / (jnp.sqrt(spread) + hyper_params.eps)
                return param - hyper_params.learning_rate * change, State(ema, squares)

        return Yogi(HyperParams(**numbers))


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("form", ["alias", "chain"])
def test_is_the_same_function(form: Form) -> None:
    new = transformation("optim.Yogi(0.01, beta1=0.8, beta2=0.99, eps=1e-2)", form)
    old = legacy(learning_rate=0.01, beta1=0.8, beta2=0.99, eps=1e-2)
    params = {"kernel": np.linspace(-0.5, 0.6, 12).reshape(4, 3), "bias": np.zeros(3)}
    assert (
        compare_transformations(old, new, params=params).verdict is Verdict.EQUIVALENT
    )
