"""What names stand for: imports, modules, classes by name, statements that bind."""

from __future__ import annotations

from tests.codemods.inference.asking import assert_answers, each

MADE = """
from flax import optim

made = optim.Adam().create(params)  # makes: made
"""

IMPORTS = """
== a star
-- library.py
MADE
-- train.py
from library import *

made.target  # is: made
== a name that another module sets
-- library.py
optimizer = None
-- train.py
import library
from flax import optim

library.optimizer = optim.Adam().create(params)  # makes: made
library.optimizer.target  # is: made
== a module by its name
-- library.py
MADE
-- train.py
import importlib

importlib.import_module("library").made.target  # is: made
"""

MAKE = """
made = optim.Adam().create(params)  # makes: made
"""

NAMES = """
== a chain of assignments
one = two = made
three: Any = one
three.target  # is: made
two.target  # is: made
== a nonlocal
def train():
    optimizer = None

    def setup():
        nonlocal optimizer
        optimizer = made

    setup()
    optimizer.target  # is: made
== either of two
second = optim.Momentum().create(params)  # makes: second
(made if big else second).target  # is: made | second
(chosen or made).target  # is: made
== match
match state:
    case None:
        pass
match made:
    case optimizer:
        optimizer.target  # is: made
match (made, 0):
    case (first, _):
        first.target  # is: made
match {"optimizer": made}:
    case {"optimizer": named}:
        named.target  # is: made
== match of a class
@dataclasses.dataclass
class State:
    optimizer: Any

match State(made):
    case State(optimizer=found):
        found.target  # is: made
== async functions
async def load():
    return made

async def train():
    optimizer = await load()
    optimizer.target  # is: made
== a parameter of a function that is handed on
def step(optimizer):
    optimizer.target  # is: made

def run(function, optimizer):
    function(optimizer)

run(step, made)
== an annotated parameter
def step(optimizer: optim.Optimizer):
    optimizer.target  # is: made

step(made)
== a star in the call
def step(optimizer, batch):
    optimizer.target  # is: made

step(*(made, 1))
step(**{"optimizer": made, "batch": 1})
"""

DEFINITIONS = """
== definitions
adam = optim.Adam(0.1)  # makes: adam
adam.hyper_params  # is: definition adam
optimizer = adam.create(params)  # makes: made
optimizer.target  # is: made
optimizer.optimizer_def.hyper_params  # is: definition adam
== a class by getattr
optimizer = getattr(optim, name)(0.1).create(params)  # makes: made
optimizer.target  # is: made
other = getattr(optim, "Adam")(0.1).create(params)  # makes: other
other.target  # is: other
== an optimizer of several parts
kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
both = optim.MultiOptimizer((kernels, optim.Adam()), (others, optim.Momentum()))
optimizer = both.create(params)  # makes: made
optimizer.target  # is: made
optimizer.state[0].step  # is: state made
== a user's own definition
class Mine(optim.OptimizerDef):
    def __init__(self, rate):
        super().__init__(rate)

optimizer = Mine(0.1).create(params)  # makes: made
optimizer.target  # is: made
== create of another kind
import optax
from flax.training.train_state import TrainState

TrainState.create(apply_fn=None, params=params, tx=tx).target  # is: unknown
Model.create(params).target  # is: unknown
"""

UNKNOWN = """
== a parameter that nobody gives
def step(optimizer, batch):
    optimizer.target  # is: unknown
== a name that nobody binds
optimizer.target  # is: unknown
== a field that nobody sets
class Trainer:
    def step(self):
        self.optimizer.target  # is: unknown
== a module out of view
from library import optimizer

optimizer.target  # is: library.optimizer
== an index that is computed, of something unknown
states[index].target  # is: unknown
== a constant and a container
(0).target  # is: unknown
None.target  # is: unknown
[made].target  # is: box
== a function that returns nothing
def step(optimizer):
    optimizer.apply_gradient(grads)

step(made).target  # is: unknown
== an attribute that an optimizer does not have
made.params.target  # is: unknown
"""


@each(IMPORTS)
def test_imports(text: str) -> None:
    assert_answers(text.replace("MADE\n", MADE))


@each(NAMES + UNKNOWN)
def test_names(text: str) -> None:
    assert_answers(MAKE + text)


@each(DEFINITIONS)
def test_definitions(text: str) -> None:
    assert_answers(text)
