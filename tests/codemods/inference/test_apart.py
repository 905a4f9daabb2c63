"""What one program makes never gets to another: helpers, containers and classes join nobody."""

from tests.codemods.inference.asking import assert_answers, each

MADE = """
adam = optim.Adam().create(params)  # makes: adam
sgd = optim.Momentum().create(params)  # makes: sgd
"""

APART = """
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
== pmap of partial
def step(model, rate, optimizer, batch):
    return optimizer.apply_gradient(batch), rate(0)

p_step = jax.pmap(partial(step, model, rate=lambda step: 0.1), axis_name="batch")
p_step(optimizer=adam, batch=1)[0].target  # is: adam
p_step(optimizer=sgd, batch=1)[0].target  # is: sgd
== carries of scans
def run(optimizer, batches):
    def body(carry, batch):
        optimizer, step = carry
        return (optimizer.apply_gradient(batch), step + 1), optimizer
    (optimizer, _), _ = lax.scan(body, (optimizer, 0), batches)
    return optimizer

run(adam, batches).target  # is: adam
run(sgd, batches).target  # is: sgd
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
"""

TOGETHER = """
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
"""


@each(APART)
def test_stays_apart(text: str) -> None:
    assert_answers(MADE + text)


@each(TOGETHER)
def test_meets(text: str) -> None:
    assert_answers(text)
