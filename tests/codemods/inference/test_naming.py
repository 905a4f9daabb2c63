"""What names stand for: imports, modules, classes by name, statements that bind."""

from __future__ import annotations

from tests.codemods.inference.asking import assert_answers, each

MADE = """
from flax import optim

made = optim.Adam().create(params)  # makes: made
"""

IMPORTS = """
== from a module
-- library.py
MADE
-- train.py
from library import made
from library import made as other

made.target  # is: made
other.target  # is: made
== a module and its alias
-- library.py
MADE
-- train.py
import library
import library as lib

library.made.target  # is: made
lib.made.target  # is: made
== a star
-- library.py
MADE
-- train.py
from library import *

made.target  # is: made
== a star with __all__
-- library.py
MADE
other = made
__all__ = ['other']
-- train.py
from library import *

other.target  # is: made
made.target  # is: unknown
== a star of a star
-- inner.py
MADE
-- outer.py
from inner import *
-- train.py
from outer import *

made.target  # is: made
== two modules that import each other by star
-- one.py
from two import *

MADE
-- two.py
from one import *

made.target  # is: made
== relative imports
-- package/__init__.py
-- package/library.py
MADE
-- package/train.py
from . import library
from .library import made

library.made.target  # is: made
made.target  # is: made
-- package/inner/__init__.py
-- package/inner/deep.py
from ..library import made
from .. import library

made.target  # is: made
library.made.target  # is: made
== a package that exports again
-- package/__init__.py
from .library import made
from . import library
from package import library as other
-- package/library.py
MADE
-- train.py
import package
from package import library, made

made.target  # is: made
package.made.target  # is: made
library.made.target  # is: made
package.library.made.target  # is: made
package.other.made.target  # is: made
== a module of a package
-- package/__init__.py
-- package/library.py
MADE
-- train.py
import package.library
import package.library as lib
from package import library

package.library.made.target  # is: made
lib.made.target  # is: made
library.made.target  # is: made
== an import in a function, and if it fails
-- library.py
MADE
-- train.py
def step():
    from library import made
    made.target  # is: made

try:
    from library import made
except ImportError:
    made = None
made.target  # is: made
== the optimizers of a module of ours
-- optimizers.py
from flax import optim
from flax.optim import Momentum as Chosen

Adam = optim.Adam
-- train.py
import optimizers
from optimizers import Adam

first = Adam(0.1).create(params)  # makes: first
second = optimizers.Chosen(0.1).create(params)  # makes: second
first.target  # is: first
second.target  # is: second
== optimizers under every name
-- train.py
import flax
import flax.optim
import flax.optim as fo
from flax import optim
from flax.optim import Adam
from flax.optim.adam import Adam as Again

a = flax.optim.Adam().create(params)  # makes: a
b = fo.Adam().create(params)  # makes: b
c = optim.Adam().create(params)  # makes: c
d = Adam().create(params)  # makes: d
e = Again().create(params)  # makes: e
a.target  # is: a
b.target  # is: b
c.target  # is: c
d.target  # is: d
e.target  # is: e
== a name that another module sets
-- library.py
optimizer = None
-- train.py
import library
from flax import optim

library.optimizer = optim.Adam().create(params)  # makes: made
library.optimizer.target  # is: made
== a function and a class of another module
-- library.py
class Trainer:
    def __init__(self, optimizer):
        self.optimizer = optimizer

def same(optimizer):
    optimizer.target  # is: made
    return optimizer
-- train.py
import library
MADE
library.same(made).target  # is: made
library.Trainer(made).optimizer.target  # is: made
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
== a loop that steps
optimizer = made
for batch in batches:
    optimizer = step(optimizer)

def step(optimizer):
    return optimizer.apply_gradient(grads)

optimizer.target  # is: made
== functions that call each other
def even(optimizer, n):
    return optimizer if n == 0 else odd(optimizer, n - 1)

def odd(optimizer, n):
    return even(optimizer.apply_gradient(grads), n - 1)

even(made, 10).target  # is: made
== a function that calls itself
def run(optimizer, batches):
    if not batches:
        return optimizer
    return run(optimizer.apply_gradient(batches[0]), batches[1:])

run(made, batches).target  # is: made
== names that are swapped
one, two = made, made
one, two = two, one
one.target  # is: made
== a chain of assignments
one = two = made
three: Any = one
three.target  # is: made
two.target  # is: made
== a global
optimizer = None

def setup():
    global optimizer
    optimizer = made

def step():
    optimizer.target  # is: made
== a nonlocal
def train():
    optimizer = None

    def setup():
        nonlocal optimizer
        optimizer = made

    setup()
    optimizer.target  # is: made
== a walrus
if (optimizer := made) is not None:
    optimizer.target  # is: made
== either of two
second = optim.Momentum().create(params)  # makes: second
(made if big else second).target  # is: made | second
(chosen or made).target  # is: made
== if and else
if adam:
    optimizer = optim.Adam().create(params)  # makes: adam
else:
    optimizer = optim.Momentum().create(params)  # makes: momentum
optimizer.target  # is: adam | momentum
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
== try and finally
try:
    optimizer = made
finally:
    optimizer.target  # is: made
== a parameter that calls give
def step(optimizer, batch):
    optimizer.target  # is: made
    batch.target  # is: unknown

step(made, 1)
== a parameter of a function that is handed on
def step(optimizer):
    optimizer.target  # is: made

def run(function, optimizer):
    function(optimizer)

run(step, made)
== a parameter of a function in a dict
def step(optimizer):
    optimizer.target  # is: made

STEPS = {"plain": step}
STEPS[name](made)
== a parameter of a step under pmap
def step(optimizer, batch):
    optimizer.target  # is: made

p_step = jax.pmap(step, axis_name="batch")
p_step(made, 1)
== a parameter of a method
class Trainer:
    def step(self, optimizer):
        optimizer.target  # is: made

Trainer().step(made)
== a parameter of a method that is stored
class Trainer:
    def __init__(self):
        self.p_step = jax.pmap(self.step)

    def step(self, optimizer):
        optimizer.target  # is: made

    def run(self):
        self.p_step(made)
== a parameter of a closure
def make_step(model):
    def step(optimizer, batch):
        optimizer.target  # is: made
    return step

make_step(model)(made, 1)
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
== a class from a dict
OPTIMIZERS = {"adam": optim.Adam, "sgd": optim.Momentum}
optimizer = OPTIMIZERS[name](0.1).create(params)  # makes: made
optimizer.target  # is: made
== a class by getattr
optimizer = getattr(optim, name)(0.1).create(params)  # makes: made
optimizer.target  # is: made
other = getattr(optim, "Adam")(0.1).create(params)  # makes: other
other.target  # is: other
== a class that an if chooses
Chosen = optim.Adam if adam else optim.Momentum
optimizer = Chosen(0.1).create(params)  # makes: made
optimizer.target  # is: made
== a partial of a class
Chosen = partial(optim.Adam, beta1=0.5)
optimizer = Chosen(0.1).create(params)  # makes: made
optimizer.target  # is: made
== a class that a function is given
def make(cls, params):
    return cls(0.1).create(params)  # makes: made

make(optim.Adam, params).target  # is: made
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
== a parameter that is given by name elsewhere
def step(optimizer):
    optimizer.target  # is: unknown

other.step(made)
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
