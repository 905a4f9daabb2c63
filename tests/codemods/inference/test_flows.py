"""Where an optimizer goes, the rewriting follows. Each program ends in a read of `.target` that only the flow can explain."""

import pytest

from tests.codemods.programs import files, migrated, project, result_of, table

MAKE = """
import collections
import dataclasses
import functools
import typing
from typing import Any, NamedTuple

import flax
import jax
from flax import optim


def make(params):
    return optim.Adam(1e-3).create(params)

"""

FLOWS = """
== a class on top of a functional namedtuple
class State(collections.namedtuple("State", ["step", "inner"])):
    def read(self):
        return self.inner

thing = State(0, make(None)).read()
== what an annotated callable returns
def read(maker: typing.Callable[[Any], optim.Optimizer]):
    global thing
    thing = maker(None)
== the default of next
thing = next(iter([]), make(None))
== a product with a tangent
def loss(x):
    global thing
    thing = x
    return x.target

jax.jvp(loss, (make(None),), (make(None),))
== a derivative of a derivative, and so on
def loss(x, weight):
    global thing
    thing = x
    return x.target * weight

slope = loss
for _ in range(9):
    slope = jax.grad(slope, argnums=1)
slope(make(None), 1.0)
== a base class that another package shares
class Base:
    def made(self):
        return make(None)

class Agent(flax.struct.PyTreeNode, Base):
    def made(self):
        return super().made()

thing = Agent().made()
== a pattern of a sequence, with a rest
match [make(None), make(None)]:
    case [first, *rest]:
        print(first.target)
        thing = rest[0]
    case [_, *_]:
        pass
== a pattern of a mapping, with a rest
match {"kind": "adam", "a": make(None), "b": make(None)}:
    case {"kind": "adam" | "momentum", "a": first, **rest} if rest:
        print(first.target)
        thing = rest["b"]
    case {"kind": None}:
        pass
== an attribute and a key of an annotated type
class Agent:
    def __init__(self, get):
        self.inner: optim.Optimizer = get()
        self.table = {}
        self.table["one"]: "optim.Optimizer" = get()

    def read(self):
        global thing
        thing = self.table["one"]
        return self.inner.target
== a quoted union
def read(x: "None | str | optim.Optimizer"):
    global thing
    thing = x
    return x.target
== a class whose base is an import of its name
try:
    from agents import Agent
except ImportError:
    class Agent:
        pass

class Agent(Agent):
    def __init__(self):
        self.inner = make(None)

thing = Agent().inner
== an attribute that a use tells of
def step(state, grads):
    global thing
    optimizer = state.inner.apply_gradient(grads)
    state.best = optimizer
    thing = state.best
    return state.replace(inner=optimizer)
== what is checked to be an optimizer
def read(x):
    global thing
    if isinstance(x, optim.Optimizer):
        thing = x
"""


@pytest.mark.parametrize("text", table(FLOWS, values=1))
def test_followed(text: str) -> None:
    after = migrated(f"{MAKE}{text}\nprint(thing.target)\n")

    assert "print(thing.params)" in after
    assert "optim." not in after.replace("flax.training", "")


BASES = """
-- deep/base
import flax

@flax.struct.dataclass
class Pair:
    inner: object
    step: int

class Base:
    def __init__(self, params):
        self.inner = flax.optim.Adam(1e-3).create(params)
-- train
import flax
import deep.base

class Heir(deep.base.Base):
    pass

class Triple(deep.base.Pair):
    more: int = 0

class Custom(flax.optim.Adam):
    pass

print(Heir(None).inner.target)
triple = Triple(flax.optim.Adam(1e-3).create(None), 3)
print(triple.inner.target)
other = Custom(0.1).create(None)
print(other.apply_gradient(None).target)
"""


def test_bases_that_are_found_late() -> None:
    """However many steps it takes to find a base, its fields, methods and constructor are inherited."""
    results = project(files(BASES))
    after = results["train"].after.decode()
    assert "print(Heir(None).inner.params)" in after
    assert "print(triple.inner.params)" in after
    assert "class Custom(Adam):" in after
    assert "tx=Custom(0.1))" in after
    assert "print(other.apply_gradients(grads=None).params)" in after
    assert {site.status for site in results["train"].sites} == {"rewritten"}


WRAPPED = """
import functools

def logged(function=None, *, name=None):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return library.compile(function, name)(*args, **kwargs)
        return wrapper
    return decorate if function is None else decorate(function)

@logged
def scheduled(optimizer, grads):
    return optimizer.apply_gradient(grads, learning_rate=0.1)

@logged(name="plain")
def plain(optimizer, grads):
    return optimizer.apply_gradient(grads)

def train(params, grads):
    one = scheduled(optim.Adam(0.1).create(params), grads)
    two = plain(optim.Momentum(0.2).create(params), grads)
    return one.target, two.target
"""


def test_functions_that_one_function_wraps_stay_apart() -> None:
    """What each takes and returns is its own: one is stepped with a rate, the other without."""
    result = result_of(WRAPPED)
    assert {site.status for site in result.sites} == {"rewritten"}
    assert b"tx=optax.sgd(0.2, momentum=0.9)" in result.after
    assert b"return one.params, two.params" in result.after
