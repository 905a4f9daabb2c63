"""The leaves of optimizers, and trees whose leaves are optimizers."""

import pytest

from tests.codemods.programs import OPTAX_ALONE, result_of, table
from tests.codemods.test_alike import assert_alike

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PROGRAM = """
import jax
import jax.numpy as jnp
from flax import optim

def is_optimizer(x):
    return isinstance(x, optim.Optimizer)

def gradients(params):
    return jax.tree_util.tree_map(lambda x: 0.1 * x + 1.0, params)

def run():
    every = {{
        "a": optim.Adam(0.1).create({{"w": jnp.ones(3)}}),
        "b": optim.Momentum(0.1).create({{"w": jnp.ones(2)}}),
    }}
    leaves, structure = jax.tree_util.tree_flatten(every{stop})
    {rest}
"""
REST = """every = structure.unflatten([one.apply_gradient(gradients(one.target)) for one in leaves])
    count = len(jax.tree_util.tree_leaves(every, is_leaf=lambda x: isinstance(x, optim.Optimizer)))
    return every["a"].target, every["b"].target, count
"""


def test_whole_optimizers_are_counted_as_before() -> None:
    after = assert_alike(PROGRAM.format(stop=", is_leaf=is_optimizer", rest=REST))
    assert "isinstance(x, train_state.TrainState)" in after


def assert_counted(text: str) -> None:
    assert "FO924" in {site.code for site in result_of(text, OPTAX_ALONE).sites}


@pytest.mark.parametrize(
    "stop", ["", ", is_leaf=lambda x: isinstance(x, dict)"], ids=["arrays", "dicts"]
)
def test_arrays_are_not(stop: str) -> None:
    assert_counted(PROGRAM.format(stop=stop, rest="return len(leaves)"))


@pytest.mark.parametrize(
    "rest",
    [
        "return sum(map(jnp.size, leaves))",
        "return list(map(jnp.shape, leaves))[1]",
        "return next(map(jnp.shape, leaves))",
        "return list(leaves)[1].shape",
        "return jax.device_get(tuple(leaves))[1].shape",
        "return structure.num_leaves",
        "return jax.tree_util.tree_structure(every).num_nodes",
        "shape = jax.tree_util.tree_structure(every['a'])\n    return shape.num_leaves",
    ],
)
def test_how_many_there_are(rest: str) -> None:
    assert_counted(PROGRAM.format(stop="", rest=rest))


@pytest.mark.parametrize(
    "rest",
    [
        # as many more of them as there may be, the answer is the same
        "return all(map(lambda x: bool(jnp.isfinite(x).all()), leaves))",
        "return any(map(bool, map(lambda x: jnp.isnan(x).any(), leaves)))",
        "return jax.tree_util.tree_structure(every['a'].target).num_nodes",
        "return jax.tree_util.tree_structure(plain).num_leaves",
        "return jax.tree_util.tree_structure(every, is_leaf=is_optimizer).num_leaves",
    ],
)
def test_as_many_as_before(rest: str) -> None:
    made = "plain = optim.GradientDescent(0.1).create({'w': jnp.ones(3)})"
    assert_alike(PROGRAM.format(stop="", rest=f"{made}\n    {rest}"))


TESTED = """
import jax
import jax.numpy as jnp
from flax import optim

def total(tree):
    return sum(leaf.size for leaf in jax.tree_util.tree_leaves(tree))

{reads}

def run():
    params = {{"w": jnp.ones(3), "b": jnp.ones(2)}}
    optimizer = optim.Adam(0.1).create(params)
    optimizer = optimizer.apply_gradient(params)
    return read(optimizer), read(params)
"""
TELLING = """
== a name that is set anew
def read(x):
    if isinstance(x, optim.Optimizer):
        x = x.target
    return sum(leaf.sum() for leaf in jax.tree_util.tree_leaves(x))
== two tests
def read(x):
    if not isinstance(x, optim.Optimizer) and isinstance(x, dict):
        return total(x)
    return total(x.target)
== an attribute
def read(x):
    if hasattr(x, "target"):
        x = x.target
    return total(x)
== a helper between
def only_params(x):
    if not isinstance(x, optim.Optimizer):
        return x
    return x.target

def read(x):
    return total(only_params(x))
"""
NOT_TELLING = """
== a name that is an optimizer again
def read(x):
    if isinstance(x, optim.Optimizer):
        return 0
    x = optim.Adam(0.1).create(x)
    return total(x)
== any type
def read(x):
    if isinstance(x, object):
        return total(x)
    return 0
"""


@pytest.mark.parametrize("reads", table(TELLING, values=1))
def test_a_test_tells_parameters_from_their_optimizer(reads: str) -> None:
    assert_alike(TESTED.format(reads=reads))


@pytest.mark.parametrize("reads", table(NOT_TELLING, values=1))
def test_no_such_test_does(reads: str) -> None:
    assert_counted(TESTED.format(reads=reads))
