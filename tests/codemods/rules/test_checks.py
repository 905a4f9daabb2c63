"""A check for `OptimizerDef` is true of definitions of one's own, too; whole programs, before and after."""

import pytest

from tests.generated.verdicts import verdict

OWN = """
import jax
import jax.numpy as jnp
from flax import optim


class Sign(optim.OptimizerDef):
    def __init__(self, learning_rate):
        super().__init__(optim.GradientDescent(learning_rate).hyper_params)

    def init_param_state(self, param):
        return ()

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        return param - hyper_params.learning_rate * jnp.sign(grad), state


"""
RUN = """
def steps(value):
    return 3 if isinstance(value, optim.OptimizerDef) else 1


def run(params, batches):
    optimizer = {definition}.create(params)
    for batch in batches:
        grads = jax.tree_util.tree_map(lambda leaf: leaf * batch, optimizer.target)
        for _ in range(steps({definition})):
            optimizer = optimizer.apply_gradient(grads)
    return [optimizer.target], []
"""


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("definition", ["Sign(0.1)", "optim.Adam(0.1)"])
def test_it_takes_as_many_steps(definition: str) -> None:
    text = OWN + RUN.format(definition=definition)
    found = verdict({"train.py": text})
    assert found.kind == "equal", found
