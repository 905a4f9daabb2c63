"""The `apply_fn` of a train state. First, parameters of which nothing tells the model."""

import pytest

from tests.codemods.programs import migrated, table

HEAD = """
from flax import linen as nn
from flax import optim
from flax.core import FrozenDict
import jax

class Net(nn.Module):
    width: int = 3

def make_net():
    return Net(width=4)

"""
MODELS = """
== a model that two statements set
None
def create(key, x, wide):
    net = Net()
    if wide:
        net = Net(width=9)
    params = net.init(key, x)["params"]
    return optim.Adam(0.1).create(params)
== a model that is known to an inner function alone
None
def create(key, x):
    def initialize(rng, width):
        return Net(width).init(rng, x)["params"]

    return optim.Adam(0.1).create(initialize(key, 7))
== parameters of two models
None
def create(key, x):
    net, head = make_net(), Net()
    params = FrozenDict(zip("ab", (net.init(key, x), head.init(key, x))))
    return optim.Adam(0.1).create(params)
== parameters that are popped
net.apply
def create(key, x):
    net = Net()
    state, params = net.init(key, x).unfreeze().pop("params")
    return optim.Adam(0.1).create(params)
== a function within, under jit
net.apply
def create(key, x):
    net = Net()

    @jax.jit
    def initialize(rng):
        variables = net.init(rng, x)
        return variables

    variables = initialize(key)
    return optim.Adam(0.1).create(variables["params"])
"""
"""Each with what becomes the `apply_fn`."""


@pytest.mark.parametrize(("apply_fn", "text"), table(MODELS, values=2))
def test_the_model_that_made_the_parameters(apply_fn: str, text: str) -> None:
    assert f"apply_fn={apply_fn}," in migrated(HEAD + text)
