"""What one program makes never gets to another: helpers, containers and classes join nobody."""

from __future__ import annotations

from tests.codemods.inference.asking import assert_answers, each

APART = """
== a helper that hands its argument back
def same(optimizer):
    return optimizer

first = same(optim.Adam().create(params))  # makes: first
second = same(optim.Momentum().create(params))  # makes: second
first.target  # is: first
second.target  # is: second
== a helper of two programs in two files
-- helpers.py
def replicate(optimizer):
    optimizer.target  # is: first | second
    return optimizer
-- first.py
from flax import optim
from helpers import replicate

optimizer = replicate(optim.Adam().create(params))  # makes: first
optimizer.target  # is: first
-- second.py
import helpers
from flax import optim

optimizer = helpers.replicate(optim.Adam().create(params))  # makes: second
optimizer.target  # is: second
== two levels of helpers
def inner(optimizer):
    return optimizer

def outer(optimizer):
    return inner(optimizer)

first = outer(optim.Adam().create(params))  # makes: first
second = outer(optim.Adam().create(params))  # makes: second
first.target  # is: first
second.target  # is: second
== three levels of helpers, by keyword
def one(optimizer):
    return optimizer

def two(optimizer):
    return one(optimizer=optimizer)

def three(optimizer):
    return two(optimizer=optimizer)

first = three(optimizer=optim.Adam().create(params))  # makes: first
second = three(optimizer=optim.Adam().create(params))  # makes: second
first.target  # is: first
second.target  # is: second
== a helper that makes one of a definition
def make(definition):
    return definition.create(params)  # makes: made

adam = make(optim.Adam())
other = optim.Momentum().create(params)  # makes: other
adam.target  # is: made
other.target  # is: other
== a helper with a default
fallback = optim.Adam().create(params)  # makes: fallback

def choose(optimizer=fallback):
    return optimizer

mine = choose(optim.Adam().create(params))  # makes: mine
mine.target  # is: mine
choose().target  # is: fallback
== a helper that gives a tuple
def beside(optimizer, step):
    return optimizer, step

first, _ = beside(optim.Adam().create(params), 0)  # makes: first
second, _ = beside(optim.Adam().create(params), 0)  # makes: second
first.target  # is: first
second.target  # is: second
== a helper that gives a dict
def packed(optimizer):
    return {"optimizer": optimizer, "step": 0}

first = packed(optim.Adam().create(params))  # makes: first
second = packed(optim.Adam().create(params))  # makes: second
first["optimizer"].target  # is: first
second["optimizer"].target  # is: second
== a helper that takes an element out
def take(state):
    return state["optimizer"]

first = take({"optimizer": optim.Adam().create(params)})  # makes: first
second = take({"optimizer": optim.Adam().create(params)})  # makes: second
first.target  # is: first
second.target  # is: second
== a helper with a star
def last(*values):
    return values[1]

def named(**values):
    return values["optimizer"]

first = optim.Adam().create(params)  # makes: first
second = optim.Adam().create(params)  # makes: second
last(first, second).target  # is: second
last(second, first).target  # is: first
named(optimizer=first, other=second).target  # is: first
== a helper that passes everything on
def step(optimizer, batch, rate=0.1):
    return optimizer

def timed(function, *args, **kwargs):
    return function(*args, **kwargs)

first = timed(step, optim.Adam().create(params), 1)  # makes: first
second = timed(step, optimizer=optim.Adam().create(params), batch=1)  # makes: second
first.target  # is: first
second.target  # is: second
== a decorator with wraps
def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@logged
def same(optimizer):
    return optimizer

first = same(optim.Adam().create(params))  # makes: first
second = same(optim.Adam().create(params))  # makes: second
first.target  # is: first
second.target  # is: second
== two functions under one decorator
def logged(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@logged
def make():
    return optim.Adam().create(params)  # makes: made

@logged
def load():
    return optim.Adam().create(params)  # makes: loaded

make().target  # is: made
load().target  # is: loaded
== a decorator with arguments
def repeated(times):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(optimizer):
            for _ in range(times):
                optimizer = function(optimizer)
            return optimizer
        return wrapper
    return decorate

@repeated(3)
def step(optimizer):
    return optimizer.apply_gradient(grads)

first = step(optim.Adam().create(params))  # makes: first
second = step(optim.Adam().create(params))  # makes: second
first.target  # is: first
second.target  # is: second
== a step under jit
@jax.jit
def step(optimizer, grads):
    return optimizer.apply_gradient(grads)

first = step(optim.Adam().create(params), grads)  # makes: first
second = step(optim.Adam().create(params), grads)  # makes: second
first.target  # is: first
second.target  # is: second
== a step under partial of jit
@partial(jax.jit, static_argnums=(1,))
def step(optimizer, steps):
    return optimizer

first = step(optim.Adam().create(params), 1)  # makes: first
second = step(optim.Adam().create(params), 1)  # makes: second
first.target  # is: first
second.target  # is: second
== pmap of partial
def step(model, rate, optimizer, batch):
    return optimizer.apply_gradient(batch), rate(0)

p_step = jax.pmap(partial(step, model, rate=lambda step: 0.1), axis_name="batch")
first, _ = p_step(optimizer=optim.Adam().create(params), batch=1)  # makes: first
second, _ = p_step(optimizer=optim.Adam().create(params), batch=1)  # makes: second
first.target  # is: first
second.target  # is: second
== partial with the optimizer filled in
def read(optimizer, batch):
    return optimizer

first = partial(read, optim.Adam().create(params))  # makes: first
second = partial(read, optim.Adam().create(params))  # makes: second
first(1).target  # is: first
second(1).target  # is: second
== a factory of steps
def make_step(rate):
    def step(optimizer, grads):
        return optimizer.apply_gradient(grads, learning_rate=rate)
    return jax.jit(step)

step = make_step(0.1)
first = step(optim.Adam().create(params), grads)  # makes: first
second = step(optim.Adam().create(params), grads)  # makes: second
first.target  # is: first
second.target  # is: second
== a closure over the optimizer
def reader(optimizer):
    def read():
        return optimizer
    return read

first = reader(optim.Adam().create(params))  # makes: first
second = reader(optim.Adam().create(params))  # makes: second
first().target  # is: first
second().target  # is: second
== lambdas
first = optim.Adam().create(params)  # makes: first
second = optim.Adam().create(params)  # makes: second
same = lambda optimizer: optimizer
get = lambda: first
same(first).target  # is: first
same(second).target  # is: second
get().target  # is: first
== auxiliary outputs of value_and_grad
def step(optimizer, other):
    def loss_fn(params):
        return loss(params), (optimizer, other)
    (value, (mine, _)), grads = jax.value_and_grad(loss_fn, has_aux=True)(optimizer.target)
    return mine, grads

first = optim.Adam().create(params)  # makes: first
second = optim.Adam().create(params)  # makes: second
step(first, second)[0].target  # is: first
step(second, first)[0].target  # is: second
== carries of scans
def run(optimizer, batches):
    def body(carry, batch):
        optimizer, step = carry
        return (optimizer.apply_gradient(batch), step + 1), optimizer
    (optimizer, _), _ = lax.scan(body, (optimizer, 0), batches)
    return optimizer

first = run(optim.Adam().create(params), batches)  # makes: first
second = run(optim.Adam().create(params), batches)  # makes: second
first.target  # is: first
second.target  # is: second
== carries of loops
def twice(optimizer):
    optimizer = lax.fori_loop(0, 2, lambda i, o: o.apply_gradient(i), optimizer)
    return lax.while_loop(lambda o: True, lambda o: o.apply_gradient(1), optimizer)

first = twice(optim.Adam().create(params))  # makes: first
second = twice(optim.Adam().create(params))  # makes: second
first.target  # is: first
second.target  # is: second
== branches of cond
def guarded(good, optimizer, other):
    return lax.cond(good, lambda pair: pair[0], lambda pair: pair[0], (optimizer, other))

first = optim.Adam().create(params)  # makes: first
second = optim.Adam().create(params)  # makes: second
guarded(True, first, second).target  # is: first
guarded(True, second, first).target  # is: second
== elements of a tuple
first = optim.Adam().create(params)  # makes: first
second = optim.Adam().create(params)  # makes: second
pair = (first, second)
pair[0].target  # is: first
pair[1].target  # is: second
left, right = pair
left.target  # is: first
right.target  # is: second
== values of a dict by constant key
optimizers = {
    "actor": optim.Adam().create(params),  # makes: actor
    "critic": optim.Adam().create(params),  # makes: critic
}
optimizers["actor"].target  # is: actor
optimizers["critic"].target  # is: critic
optimizers.get("critic").target  # is: critic
optimizers[name].target  # is: actor | critic
== values that are stored by constant key
optimizers = {}
optimizers["actor"] = optim.Adam().create(params)  # makes: actor
optimizers["critic"] = optim.Adam().create(params)  # makes: critic
optimizers["actor"].target  # is: actor
optimizers["critic"].target  # is: critic
== instances of a dataclass
@dataclasses.dataclass
class State:
    step: int
    optimizer: Any

first = State(0, optim.Adam().create(params))  # makes: first
second = State(optimizer=optim.Adam().create(params), step=0)  # makes: second
first.optimizer.target  # is: first
second.optimizer.target  # is: second
== two fields of a struct dataclass
@flax.struct.dataclass
class State:
    generator: optim.Optimizer
    discriminator: optim.Optimizer

state = State(
    optim.Adam().create(params),  # makes: generator
    discriminator=optim.Adam().create(params),  # makes: discriminator
)
state.generator.target  # is: generator
state.discriminator.target  # is: discriminator
== replace of one of two states
@flax.struct.dataclass
class State:
    optimizer: Any
    step: int = 0

def advance(state, grads):
    return state.replace(
        optimizer=state.optimizer.apply_gradient(grads), step=state.step + 1)

first = State(optim.Adam().create(params))  # makes: first
second = State(optim.Adam().create(params))  # makes: second
for batch in batches:
    first = advance(first, batch)
    second = advance(second, batch)
first.optimizer.target  # is: first
second.optimizer.target  # is: second
== two instances of one class
class Trainer:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def read(self):
        return self.optimizer

first = Trainer(optim.Adam().create(params))  # makes: first
second = Trainer(optim.Adam().create(params))  # makes: second
first.optimizer.target  # is: first
second.read().target  # is: second
== two fields of one class
class Trainer:
    def __init__(self):
        self.actor = optim.Adam().create(params)  # makes: actor
        self.critic = optim.Adam().create(params)  # makes: critic

    def step(self):
        self.actor = self.actor.apply_gradient(grads)
        self.critic = self.critic.apply_gradient(grads)
        self.actor.target  # is: actor
        self.critic.target  # is: critic
== a class of optimizers and one of models
class Trainer:
    def __init__(self):
        self.optimizer = optim.Adam().create(params)  # makes: made

class Model:
    def __init__(self):
        self.optimizer = unknown()

Trainer().optimizer.target  # is: made
Model().optimizer.target  # is: unknown
== fields that are set from outside
class Trainer:
    pass

first, second = Trainer(), Trainer()
first.optimizer = optim.Adam().create(params)  # makes: first
second.optimizer = optim.Adam().create(params)  # makes: second
first.optimizer.target  # is: first
second.optimizer.target  # is: second
== lists of one helper
def new():
    return []

first = new()
second = new()
first.append(optim.Adam().create(params))  # makes: first
second.append(optim.Adam().create(params))  # makes: second
first[0].target  # is: first
second[0].target  # is: second
== a trainer with decorated, mapped and partial methods
def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

class Trainer:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.p_step = jax.pmap(partial(self._step, rate=1))

    @logged
    def _step(self, optimizer, batch, rate):
        value, grads = jax.value_and_grad(loss_fn)(optimizer.target)
        return optimizer.apply_gradient(grads), value

    def train(self):
        for batch in batches:
            self.optimizer, value = self.p_step(self.optimizer, batch)
        return self.optimizer

first = Trainer(optim.Adam().create(params))  # makes: first
second = Trainer(optim.Adam().create(params))  # makes: second
first.train().target  # is: first
second.optimizer.target  # is: second
== methods of one name
class Actor:
    def make(self):
        return optim.Adam().create(params)  # makes: actor

class Critic:
    def make(self):
        return optim.Adam().create(params)  # makes: critic

Actor().make().target  # is: actor
Critic().make().target  # is: critic
== an override
class Base:
    def make(self):
        return optim.Adam().create(params)  # makes: base

class Heir(Base):
    def make(self):
        return optim.Adam().create(params)  # makes: heir

Base().make().target  # is: base
Heir().make().target  # is: heir
== modules with one name each
-- first.py
from flax import optim

optimizer = optim.Adam().create(params)  # makes: first
-- second.py
from flax import optim

optimizer = optim.Adam().create(params)  # makes: second
-- train.py
import first
from second import optimizer

first.optimizer.target  # is: first
optimizer.target  # is: second
== a local name and a global one
optimizer = optim.Adam().create(params)  # makes: outer

def step():
    optimizer = optim.Adam().create(params)  # makes: inner
    optimizer.target  # is: inner

optimizer.target  # is: outer
== a variable of a comprehension
first = [optim.Adam().create(params)]  # makes: first
second = [optim.Adam().create(params)]  # makes: second
all([
    optimizer.target  # is: first
    for optimizer in first
])
all([
    optimizer.target  # is: second
    for optimizer in second
])
== a generator of two programs
def forever(optimizer):
    while True:
        yield optimizer

for first in forever(optim.Adam().create(params)):  # makes: first
    first.target  # is: first
for second in forever(optim.Adam().create(params)):  # makes: second
    second.target  # is: second
== what a checkpoint is restored into
first = optim.Adam().create(params)  # makes: first
second = optim.Adam().create(params)  # makes: second

def load(optimizer):
    return serialization.from_bytes(optimizer, data)

load(first).target  # is: first
load(second).target  # is: second
== state of an agent that is carried in tuples
def train(actor, critic):
    for batch in batches:
        actor, critic = update(actor, critic, batch)
    return actor, critic

def update(actor, critic, batch):
    return actor.apply_gradient(batch), critic.apply_gradient(batch)

actor, critic = train(
    optim.Adam().create(params),  # makes: actor
    optim.Adam().create(params),  # makes: critic
)
actor.target  # is: actor
critic.target  # is: critic
== one variable, begun anew from top to bottom
def step(optimizer):
    return optimizer.apply_gradient(grads)

optimizer = optim.Adam().create(params)  # makes: first
for batch in batches:
    optimizer.target  # is: first
    optimizer = step(optimizer)
print(optimizer.target)  # is: first
optimizer = optim.Adam().create(optimizer.target)  # makes: second
for batch in batches:
    optimizer.target  # is: second
    optimizer = step(optimizer)
optimizer.target  # is: second
== one variable, begun anew within a function
def run():
    optimizer = optim.Adam().create(params)  # makes: first
    optimizer.target  # is: first
    optimizer = optim.Momentum().create(params)  # makes: second
    return optimizer

run().target  # is: second
== one variable in branches, until these meet
def constant(optimizer):
    optimizer.target  # is: second
    return optimizer.apply_gradient(grads)

def train(is_decayed):
    if is_decayed:
        optimizer = optim.Adam().create(params)  # makes: first
        optimizer = optimizer.apply_gradient(grads, learning_rate=rate)
        optimizer.target  # is: first
    else:
        optimizer = optim.Adam(0.1).create(params)  # makes: second
        optimizer = constant(optimizer)
    return optimizer.target  # is: first | second
== one variable for a function in each experiment
def step(optimizer):
    optimizer.target  # is: first
    return optimizer

step(optim.Adam().create(params))  # makes: first

def step(optimizer):
    optimizer.target  # is: second
    return optimizer

step(optim.Adam().create(params))  # makes: second
== one variable for a parameter and what is made of it
def train(optimizer):
    optimizer.target  # is: first
    optimizer = optim.Adam().create(optimizer.target)  # makes: second
    optimizer.target  # is: second

train(optim.Adam().create(params))  # makes: first
== one variable in a comprehension on the way
optimizer = optim.Adam().create(params)  # makes: first
[optimizer.target for _ in batches]  # is: first
optimizer = optim.Adam().create(params)  # makes: second
[optimizer.target for _ in batches]  # is: second
"""

TOGETHER = """
== one variable that a function of its scope reads
def evaluate():
    return optimizer.target  # is: first | second

optimizer = optim.Adam().create(params)  # makes: first
evaluate()
optimizer = optim.Adam().create(params)  # makes: second
evaluate()
== one variable that another function sets, too
def restart():
    global optimizer
    optimizer = optim.Adam().create(params)  # makes: third

optimizer = optim.Adam().create(params)  # makes: first
optimizer = optim.Adam().create(params)  # makes: second
restart()
optimizer.target  # is: first | second | third
== one variable of a loop that may have no turn
optimizer = optim.Adam().create(params)  # makes: first
for optimizer in [optim.Adam().create(params)]:  # makes: second
    optimizer.target  # is: second
optimizer.target  # is: first | second
== one variable in a loop that comes back to it
optimizer = optim.Adam().create(params)  # makes: first
for batch in batches:
    optimizer.target  # is: first | second
    optimizer = optim.Adam().create(params)  # makes: second
    optimizer.target  # is: second
== one variable where an exception may come in between
optimizer = optim.Adam().create(params)  # makes: first
try:
    load()
    optimizer = optim.Adam().create(params)  # makes: second
except OSError:
    optimizer.target  # is: first | second
optimizer.target  # is: first | second
== one variable that a context manager may leave as it was
optimizer = optim.Adam().create(params)  # makes: first
with contextlib.suppress(OSError):
    load()
    optimizer = optim.Adam().create(params)  # makes: second
optimizer.target  # is: first | second
== one variable in an expression that may not be evaluated
optimizer = optim.Adam().create(params)  # makes: first
fresh and (optimizer := optim.Adam().create(params))  # makes: second
optimizer.target  # is: first | second
== one variable of a generator that runs later
optimizer = optim.Adam().create(params)  # makes: first
targets = (optimizer.target for _ in batches)  # is: first | second
optimizer = optim.Adam().create(params)  # makes: second
next(targets)
== one variable of a module that another reads
-- first.py
from flax import optim

optimizer = optim.Adam().create(params)  # makes: first
optimizer.target  # is: first
optimizer = optim.Adam().create(params)  # makes: second
-- second.py
import first

first.optimizer.target  # is: first | second
"""


@each(APART)
def test_stays_apart(text: str) -> None:
    assert_answers(text)


@each(TOGETHER)
def test_meets(text: str) -> None:
    assert_answers(text)
