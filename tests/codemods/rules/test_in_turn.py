"""Optimizers that have one name in turn: each becomes what it would become by itself."""

import pytest

from tests.codemods.test_alike import assert_alike

pytestmark = pytest.mark.usefixtures("legacy_wheel")

HEAD = """
import functools
import jax
import jax.numpy as jnp
from flax import optim

def gradients(params):
    return jax.tree_util.tree_map(lambda x: 0.1 * x + 1.0, params)

def start():
    return {"w": jnp.arange(3.0) + 1.0, "b": jnp.ones(2)}
"""
IN_TURN = {
    "in the branches of a condition": """
def decayed(optimizer, i):
    return optimizer.apply_gradient(gradients(optimizer.target), learning_rate=0.1 / (i + 1))

def constant(optimizer):
    return optimizer.apply_gradient(gradients(optimizer.target))

def train(is_decayed):
    if is_decayed:
        optimizer = optim.Momentum(beta=0.8).create(start())
        for i in range(3):
            optimizer = decayed(optimizer, i)
    else:
        optimizer = optim.Momentum(0.01, beta=0.8).create(start())
        for i in range(3):
            optimizer = constant(optimizer)
    return optimizer.target

def run():
    return [train(True), train(False)]
""",
    "with a step of its own for each, under one name, too": """
def run():
    results = []

    @jax.jit
    def step(optimizer, i):
        return optimizer.apply_gradient(gradients(optimizer.target))

    optimizer = optim.Adam(0.1).create(start())
    for i in range(3):
        optimizer = step(optimizer, i)
    results.append(optimizer.target)

    @jax.jit
    def step(optimizer, i):
        return optimizer.apply_gradient(gradients(optimizer.target), learning_rate=0.3 / (i + 1))

    optimizer = optim.Adam(0.2).create(start())
    for i in range(3):
        optimizer = step(optimizer, i)
    return results + [optimizer.target, optimizer.state.step]
""",
    "two that one function makes": """
def make(rate):
    return optim.Adam(rate)

def run():
    generator, critic = make(0.1).create(start()), make(0.2).create(start())
    for i in range(3):
        generator = generator.apply_gradient(gradients(generator.target), learning_rate=0.3 / (i + 1))
        critic = critic.apply_gradient(gradients(critic.target))
    return [generator.target, critic.target]
""",
}


@pytest.mark.parametrize("text", IN_TURN.values(), ids=IN_TURN)
def test_only_what_sets_a_rate_injects_one(text: str) -> None:
    after = assert_alike(HEAD + text)
    assert "OptimizerDef" not in after
    assert after.count("inject_hyperparams") == 1


TWO = """
from flax import serialization

def make(rate):
    return optim.Adam(rate)

def run():
    first, second = make(0.1).create(start()), make(0.2).create(start())
    for i in range(3):
        first = first.apply_gradient(gradients(first.target), learning_rate=0.3 / (i + 1))
        {between}
        second = second.apply_gradient(gradients(second.target))
    return [first.target, second.target]
"""
TOGETHER = {
    "by a loop that comes back to it": """
def run():
    optimizer = optim.Adam(0.1).create(start())
    for i in range(3):
        optimizer = optimizer.apply_gradient(gradients(optimizer.target))
        if i == 1:
            optimizer = optim.Adam(0.1).create(optimizer.target)
        optimizer = optimizer.apply_gradient(gradients(optimizer.target), learning_rate=0.2)
    return optimizer.target
""",
    "by what the first of two branches has made": """
def train(fresh):
    optimizer = optim.Adam(0.1).create(start())
    if fresh:
        optimizer = optim.Adam(0.1).create(start())
        optimizer = optimizer.apply_gradient(gradients(optimizer.target), learning_rate=0.2)
    return optimizer.apply_gradient(gradients(optimizer.target)).target

def run():
    return [train(True), train(False)]
""",
    "by their names, that are exchanged": TWO.format(
        between="first, second = second, first"
    ),
    "by a state that one takes from the other": TWO.format(
        between="second = second.replace(state=first.state)"
    ),
    "by a checkpoint": TWO.format(
        between="second = serialization.from_bytes(second, serialization.to_bytes(first))"
    ),
}


@pytest.mark.parametrize("text", TOGETHER.values(), ids=TOGETHER)
def test_where_they_meet_the_rate_is_that_of_each_step(text: str) -> None:
    assert_alike(HEAD + text)


OPTIONS = """
def train(definition, **options):
    optimizer = definition.create(start())

    def step(optimizer):
        return optimizer.apply_gradient(gradients(optimizer.target), **options)

    for _ in range(3):
        optimizer = step(optimizer)
    return optimizer.target

def run():
    return [train(optim.Adam(0.1)), train(optim.Adam(0.2, beta1=0.8))]
"""


def test_options_that_no_call_gives_stay_options() -> None:
    after = assert_alike(HEAD + OPTIONS)
    assert "apply_gradients(grads=gradients(optimizer.params), **options)" in after
    assert "inject_hyperparams" not in after


def test_options_that_one_call_gives_are_set_before_the_step() -> None:
    given = OPTIONS.replace("beta1=0.8)", "beta1=0.8), learning_rate=0.3")
    after = assert_alike(HEAD + given)
    assert "options)" in after


@pytest.mark.parametrize(
    "given", ["{'learning_rate': rate, 'beta1': 0.5}", "dict(beta1=0.5)"]
)
def test_options_that_are_constants_are_not_missed(given: str) -> None:
    text = f"""
def run():
    optimizer = optim.Adam(0.1).create(start())
    for rate in (0.1, 0.3):
        optimizer = optimizer.apply_gradient(gradients(optimizer.target), **{given})
    return optimizer.target
"""
    assert "apply_gradients_with" in assert_alike(HEAD + text)


def test_a_step_with_its_gradient_has_the_rate_of_the_constructor_again() -> None:
    after = assert_alike(
        HEAD
        + """
def loss(params):
    return jnp.sum(params["w"] ** 2) + jnp.sum(params["b"])

def run():
    optimizer = optim.Adam(0.1).create(start())
    for rate in (0.2, 0.3):
        optimizer, value = optimizer.optimize(loss, learning_rate=rate)
        optimizer, value = optimizer.optimize(loss)
    return optimizer.target, value
"""
    )
    assert "tree_set(optimizer.opt_state, learning_rate=0.1)" in after
    assert "OptimizerDef" not in after
