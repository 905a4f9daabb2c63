"""What one program makes never gets to another: helpers, containers and classes join nobody."""

from __future__ import annotations

from tests.codemods.inference.asking import assert_answers, each

MADE = """
adam = optim.Adam().create(params)  # makes: adam
sgd = optim.Momentum().create(params)  # makes: sgd
"""

APART = """
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
== helpers that hand their argument back, up to three levels of them
def one(optimizer):
    return optimizer

def two(optimizer):
    return one(optimizer=optimizer)

def three(optimizer):
    return two(optimizer=optimizer)

one(adam).target  # is: adam
one(sgd).target  # is: sgd
three(optimizer=adam).target  # is: adam
three(optimizer=sgd).target  # is: sgd
== a helper that makes one of a definition
def make(definition):
    return definition.create(params)  # makes: made

make(optim.Adam()).target  # is: made
adam.target  # is: adam
== a helper with a default
def choose(optimizer=adam):
    return optimizer

choose(sgd).target  # is: sgd
choose().target  # is: adam
== helpers that give a tuple or a dict, or take an element out
def beside(optimizer, step):
    return optimizer, step

def packed(optimizer):
    return {"optimizer": optimizer, "step": 0}

def take(state):
    return state["optimizer"]

first, _ = beside(adam, 0)
second, _ = beside(sgd, 0)
first.target  # is: adam
second.target  # is: sgd
packed(adam)["optimizer"].target  # is: adam
packed(sgd)["optimizer"].target  # is: sgd
take({"optimizer": adam}).target  # is: adam
take({"optimizer": sgd}).target  # is: sgd
== a helper that passes everything on
def step(optimizer, batch, rate=0.1):
    return optimizer

def timed(function, *args, **kwargs):
    return function(*args, **kwargs)

timed(step, adam, 1).target  # is: adam
timed(step, optimizer=sgd, batch=1).target  # is: sgd
== two functions under one decorator, with wraps
def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@logged
def same(optimizer):
    return optimizer

@logged
def make():
    return optim.Adam().create(params)  # makes: made

same(adam).target  # is: adam
same(sgd).target  # is: sgd
make().target  # is: made
== a step under partial of jit
@partial(jax.jit, static_argnums=(1,))
def step(optimizer, steps):
    return optimizer

step(adam, 1).target  # is: adam
step(sgd, 1).target  # is: sgd
== pmap of partial
def step(model, rate, optimizer, batch):
    return optimizer.apply_gradient(batch), rate(0)

p_step = jax.pmap(partial(step, model, rate=lambda step: 0.1), axis_name="batch")
p_step(optimizer=adam, batch=1)[0].target  # is: adam
p_step(optimizer=sgd, batch=1)[0].target  # is: sgd
== partial with the optimizer filled in
def read(optimizer, batch):
    return optimizer

first, second = partial(read, adam), partial(read, sgd)
first(1).target  # is: adam
second(1).target  # is: sgd
== lambdas
same = lambda optimizer: optimizer
get = lambda: adam
same(adam).target  # is: adam
same(sgd).target  # is: sgd
get().target  # is: adam
== carries of scans
def run(optimizer, batches):
    def body(carry, batch):
        optimizer, step = carry
        return (optimizer.apply_gradient(batch), step + 1), optimizer
    (optimizer, _), _ = lax.scan(body, (optimizer, 0), batches)
    return optimizer

run(adam, batches).target  # is: adam
run(sgd, batches).target  # is: sgd
== carries of loops
def twice(optimizer):
    optimizer = lax.fori_loop(0, 2, lambda i, o: o.apply_gradient(i), optimizer)
    return lax.while_loop(lambda o: True, lambda o: o.apply_gradient(1), optimizer)

twice(adam).target  # is: adam
twice(sgd).target  # is: sgd
== branches of cond
def guarded(good, optimizer, other):
    return lax.cond(good, lambda pair: pair[0], lambda pair: pair[0], (optimizer, other))

guarded(True, adam, sgd).target  # is: adam
guarded(True, sgd, adam).target  # is: sgd
== elements of a tuple, and those of a dict by constant key
pair = (adam, sgd)
pair[0].target  # is: adam
left, right = pair
right.target  # is: sgd
optimizers = {"actor": adam, "critic": sgd}
optimizers["actor"].target  # is: adam
optimizers.get("critic").target  # is: sgd
optimizers[name].target  # is: adam | sgd
stored = {}
stored["actor"] = adam
stored["critic"] = sgd
stored["critic"].target  # is: sgd
== instances of a dataclass, and its fields
@dataclasses.dataclass
class State:
    step: int
    optimizer: Any
    other: Any = None

first, second = State(0, adam), State(optimizer=sgd, other=adam, step=0)
first.optimizer.target  # is: adam
second.optimizer.target  # is: sgd
second.other.target  # is: adam
== replace of one of two states
@flax.struct.dataclass
class State:
    optimizer: Any
    step: int = 0

def advance(state, grads):
    return state.replace(
        optimizer=state.optimizer.apply_gradient(grads), step=state.step + 1)

first, second = State(adam), State(sgd)
for batch in batches:
    first = advance(first, batch)
    second = advance(second, batch)
first.optimizer.target  # is: adam
second.optimizer.target  # is: sgd
== two instances of one class
class Trainer:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def read(self):
        return self.optimizer

Trainer(adam).optimizer.target  # is: adam
Trainer(sgd).read().target  # is: sgd
== two fields of one class
class Trainer:
    def __init__(self):
        self.actor, self.critic = adam, sgd

    def step(self):
        self.actor = self.actor.apply_gradient(grads)
        self.critic = self.critic.apply_gradient(grads)
        self.actor.target  # is: adam
        self.critic.target  # is: sgd
== fields that are set from outside
class Trainer:
    pass

first, second = Trainer(), Trainer()
first.optimizer = adam
second.optimizer = sgd
first.optimizer.target  # is: adam
second.optimizer.target  # is: sgd
== lists of one helper
def new():
    return []

first, second = new(), new()
first.append(adam)
second.append(sgd)
first[0].target  # is: adam
second[0].target  # is: sgd
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

Trainer(adam).train().target  # is: adam
Trainer(sgd).optimizer.target  # is: sgd
== an override
class Base:
    def make(self):
        return adam

class Heir(Base):
    def make(self):
        return sgd

Base().make().target  # is: adam
Heir().make().target  # is: sgd
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
    assert_answers(MADE + text)


@each(TOGETHER)
def test_meets(text: str) -> None:
    assert_answers(text)
