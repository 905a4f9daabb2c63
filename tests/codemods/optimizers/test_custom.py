"""What makes an optimizer of one's own class, where a step sets its learning rate."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.programs import migrated

PROGRAM = """
    import flax
    import jax
    import jax.numpy as jnp
    from flax import optim


    @flax.struct.dataclass
    class Hyper:
        learning_rate: float
        beta: float


    class SignDescent(optim.OptimizerDef):
        def __init__(self, beta, learning_rate=None, *, scale=1.0):
            super().__init__(Hyper(learning_rate, beta))
            self.scale = scale

        def init_param_state(self, param):
            return jnp.zeros_like(param)

        def apply_param_gradient(self, step, hyper_params, param, state, grad):
            mean = hyper_params.beta * state + grad
            return param - self.scale * hyper_params.learning_rate * jnp.sign(mean), mean


    def train(params, batches, config):
        optimizer = {made}.create(params)
        for rate, grads in batches:
            optimizer = optimizer.apply_gradient(grads{given})
        return optimizer.target
    """
LAMBDA = "optax.inject_hyperparams(lambda learning_rate: {}.transformation())(learning_rate={})"
MADE = {
    "by position": ("SignDescent(0.9, 0.1)", LAMBDA.format("SignDescent(0.9, learning_rate)", "0.1")),
    "by its name, first": (
        "SignDescent(learning_rate=config.rate, beta=0.9)",
        LAMBDA.format("SignDescent(learning_rate=learning_rate, beta=0.9)", "config.rate"),
    ),
    "a whole number": (
        "SignDescent(0.9, 1, scale=2)",
        LAMBDA.format("SignDescent(0.9, learning_rate, scale=2)", "1.0"),
    ),
    "not yet": ("SignDescent(0.9)", LAMBDA.format("SignDescent(0.9, learning_rate=learning_rate)", "0.0")),
    "not yet, after others": (
        "SignDescent(0.9, scale=2.0)",
        LAMBDA.format("SignDescent(0.9, scale=2.0, learning_rate=learning_rate)", "0.0"),
    ),
}


def after(made: str, given: str) -> str:
    return migrated(PROGRAM.replace("{made}", made).replace("{given}", given))


@pytest.mark.parametrize("made", [made for made, _ in MADE.values() if "0.1" in made or "config" in made])
def test_a_rate_that_no_step_sets_stays_where_it_is(made: str) -> None:
    assert f"tx={made}.transformation()" in after(made, "")


@pytest.mark.parametrize(("made", "expected"), MADE.values(), ids=MADE)
def test_a_rate_that_a_step_sets_is_injected(made: str, expected: str) -> None:
    new = after(made, ", learning_rate=rate")
    transformations = [
        ast.unparse(node.value)
        for node in ast.walk(ast.parse(new))
        if isinstance(node, ast.keyword) and node.arg == "tx"
    ]
    assert expected in transformations
    assert "optax.tree_utils.tree_set(optimizer.opt_state, learning_rate=rate)" in new
