"""Learning rates that must not become schedules in the transformation, each with the reason that is told."""

import pytest

from tests.codemods.idioms.schedules import legacy
from tests.codemods.programs import result_of, table

KEPT = """
== a step of the caller's own may be another number
it does not come from the optimizer's own step
import jax
from flax import optim

def train_step(optimizer, grad, lr):
    return optimizer.apply_gradient(grad, learning_rate=lr)

def train(params, grads, schedule, start):
    optimizer = optim.Adam(1e-3).create(params)
    for step, grad in enumerate(grads, start):
        optimizer = train_step(optimizer, grad, schedule(step))
    return optimizer
== the step of another optimizer
it does not come from the optimizer's own step
from flax import optim

def train_step(generator, critic, grad, schedule):
    generator = generator.apply_gradient(grad, learning_rate=schedule(critic.state.step))
    return generator

def train(params, grads, schedule):
    generator = optim.Adam(1e-3).create(params)
    critic = optim.Adam(1e-3).create(params)
    for grad in grads:
        critic = critic.apply_gradient(grad)
        generator = train_step(generator, critic, grad, schedule)
    return generator
== the step is taken between reading the count and using it
it does not come from the optimizer's own step
rate: schedule(step)
behind: step = optimizer.state.step
== two steps that compute it in different ways
the optimizer takes steps at several places
args:
loop: optimizer = cool(warm(optimizer, grad), grad)
above:
    def warm(optimizer, grad):
        return optimizer.apply_gradient(grad, learning_rate=0.1 * optimizer.state.step)

    def cool(optimizer, grad):
        return optimizer.apply_gradient(grad, learning_rate=0.1 / optimizer.state.step)
== a function that is exchanged half-way
`schedule` has more than one value
args: slow, fast
then:
    if optimizer.state.step > 100:
        schedule = fast
behind: schedule = slow
== what the schedule is made of is updated first
something of which `schedule` is made may change at train.py:6, after the optimizer was made
args: config
above: import optax
behind:
    config.update(peak=0.2)
    schedule = optax.cosine_decay_schedule(config.peak, 100)
== a call that may be one of another function
a call of `create` may be one of another function
args: quick
made: trainer.create(params)
above:
    class Trainer:
        def create(self, params):
            return optim.Adam().create(params)

    class Other(Trainer):
        def create(self, params):
            return optim.Momentum().create(params)
ahead:
    schedule = lambda step: 0.1 / (step + 1)
    trainer = Other() if quick else Trainer()
== a schedule that only one branch makes
`schedule` is made in a block of its own
from flax import optim

def train(params, grads, decays):
    optimizer = optim.Momentum(0.1).create(params)
    if decays:
        schedule = lambda step: 0.1 / (step + 1)
        for grad in grads:
            optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
    return optimizer
== another program restores what this one stores
train.py:11 restores checkpoints into such an optimizer that takes no step
from flax import optim
from flax.training import checkpoints

def train(params, grads, schedule):
    optimizer = optim.Adam().create(params)
    for grad in grads:
        optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
    checkpoints.save_checkpoint("runs", optimizer, 1)

def evaluate(params):
    return checkpoints.restore_checkpoint("runs", optim.Adam().create(params)).target
== what calls the function that makes the optimizer is not all in view
not every call of `make` is in view
args: run
made: make(params, 0.1)
above:
    def make(params, rate):
        return optim.Adam(rate).create(params)
ahead:
    schedule = lambda step: 0.1 / (step + 1)
    optimizer = run(make, params)
== a rate for the optimizer as it was before
it does not come from the optimizer's own step
args: other
loop: optimizer = train_step(optimizer, grad, 0.1 / (1 + optimizer.state.step))
made: optim.Adam().create(params)
above:
    def train_step(optimizer, grad, lr):
        optimizer = optimizer.replace(target=grad)
        return optimizer.apply_gradient(grad, learning_rate=lr)
== the step is handed on in a tuple
the schedule is not in reach at train.py:11, where the optimizer is made
from flax import optim

def step(optimizer, rate):
    return optimizer.apply_gradient(None, learning_rate=rate(optimizer.state.step))

def run(pair):
    function, optimizer = pair
    return function(optimizer, lambda count: 0.1 / (count + 1))

def train(params):
    optimizer = optim.Adam(1e-3).create(params)
    for _ in range(3):
        optimizer = run((step, optimizer))
    return optimizer
== its name is taken where the optimizer is made
the name `schedule` is taken where the optimizer is made
args: config
made: create(params, config)
above:
    def create(params, config):
        schedule = config.name
        print(schedule)
        return optim.Momentum(config.beta).create(params)
behind: schedule = config.schedule
== what makes the optimizer is decorated
`create`, which makes the optimizer, takes any arguments or is decorated
args: config
made: create(params)
above:
    import jax

    @jax.jit
    def create(params):
        return optim.Momentum(0.1).create(params)
ahead: schedule = config.schedule
== set behind the class that makes the optimizer
the schedule is not in reach at train.py:6, where the optimizer is made
from flax import optim
import optax

class Trainer:
    def train(self, params, grads):
        optimizer = optim.Momentum(0.1).create(params)
        for grad in grads:
            optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
        return optimizer

schedule = optax.linear_schedule(0.1, 0.0, 1000)
== a field that the class sets
`step` of `State` does not always count the steps of its optimizer (train.py:5)
from flax import optim

class State:
    def __init__(self, step, optimizer):
        self.step = step
        self.optimizer = optimizer

def train(params, grads, schedule):
    state = State(0, optim.Momentum(0.1).create(params))
    for grad in grads:
        state.optimizer = state.optimizer.apply_gradient(grad, learning_rate=schedule(state.step))
        state.step += 1
    return state
== what computes it takes an element out
what computes it changes something, too
rate: scales.pop() * schedule(optimizer.state.step)
args: schedule, scales
== what computes it goes on in an iterator
what computes it changes something, too
rate: lr
args: schedule, scales
first: lr = schedule(optimizer.state.step) * next(scales)
== a rate beside the optimizer
it does not come from the optimizer's own step
from typing import NamedTuple
from flax import optim

class State(NamedTuple):
    optimizer: optim.Optimizer
    rate: float

def train(params, grads):
    state = State(optim.Momentum(0.1).create(params), 0.1)
    for grad in grads:
        optimizer = state.optimizer.apply_gradient(grad, learning_rate=state.rate)
        state = state._replace(optimizer=optimizer)
    return state
== a number of the step, which no traced array has
what computes it changes something, too
rate: 0.1 / (1 + optimizer.state.step.item())
args:
== the schedule is made of what is unpacked behind the optimizer
`schedule` depends on what is computed after the optimizer was made
args: config
above:
    def make(base, end):
        return lambda step: base / (step + 1) + end
behind:
    base, end = config.rates
    schedule = make(base, end)
== restored between reading the count and the step
it does not come from the optimizer's own step
from flax import optim
from flax.training import checkpoints

schedule = lambda step: 0.1 / (step + 1)

class Trainer:
    def __init__(self, params):
        self.optimizer = optim.Momentum(0.1).create(params)

    def resume(self, grad, directory):
        lr = schedule(self.optimizer.state.step)
        self.optimizer = checkpoints.restore_checkpoint(directory, self.optimizer)
        self.optimizer = self.optimizer.apply_gradient(grad, learning_rate=lr)
== a method between reading the count and the step
it does not come from the optimizer's own step
from flax import optim

schedule = lambda step: 0.1 / (step + 1)

class Trainer:
    def __init__(self, params):
        self.optimizer = optim.Momentum(0.1).create(params)

    def warm(self, grad):
        self.optimizer = optim.Momentum(0.1).create(grad)

    def step(self, grad):
        step = self.optimizer.state.step
        self.warm(grad)
        self.optimizer = self.optimizer.apply_gradient(grad, learning_rate=schedule(step))
== the schedule of an object that makes the optimizer
the schedule is not in reach at train.py:5, where the optimizer is made
from flax import optim

class Trainer:
    def __init__(self, params, schedule):
        self.optimizer = optim.Momentum(0.1).create(params)
        self.schedule = schedule

    def step(self, grad):
        self.optimizer = self.optimizer.apply_gradient(grad, learning_rate=self.schedule(self.optimizer.state.step))

def train(params, grads, schedule):
    trainer = Trainer(params, schedule)
    for grad in grads:
        trainer.step(grad)
== a long expression
it is computed by a long expression within the step
rate: lr
args: config
first: lr = config.base_learning_rate * config.warmup_scale / (1.0 + optimizer.state.step / config.decay_steps)
== a dict within the expression
it is computed by a long expression within the step
rate: lr
args: config
first: lr = config.schedules[{True: 'fast'}[config.fast]](optimizer.state.step)
== a builtin that is handed on
the schedule is not in reach at train.py:8, where the optimizer is made
args:
loop: optimizer = train_step(optimizer, grad, min)
above:
    def train_step(optimizer, grad, combine):
        return optimizer.apply_gradient(grad, learning_rate=combine(0.1, 1e-3 * optimizer.state.step))
== a function that hands it on to itself
the schedule is not in reach at train.py:10, where the optimizer is made
from flax import optim

def train(optimizer, grads, schedule):
    if not grads:
        return optimizer
    optimizer = optimizer.apply_gradient(grads[0], learning_rate=schedule(optimizer.state.step))
    return train(optimizer, grads[1:], schedule)

def start(params):
    return optim.Momentum(0.1).create(params)
== a decorator with the schedule
the schedule is not in reach at train.py:14, where the optimizer is made
args:
loop: optimizer = train_step(optimizer, grad)
above:
    def scheduled(schedule):
        def step(optimizer, grad):
            return optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
        return step

    @scheduled
    def train_step(step):
        return 0.1 / (step + 1)
== a count that a function within has from around it
it does not come from the optimizer's own step
loop:
    step = optimizer.state.step
    def update(grad):
        return optimizer.apply_gradient(grad, learning_rate=schedule(step))
    optimizer = update(grad)
== the function that makes the optimizer is evaluated for its shapes
not every call of `create` is in view
import jax
from flax import optim

def create(lr=0.1):
    return optim.Momentum(lr).create({"w": 1.0})

def train(grads, schedule):
    print(jax.eval_shape(fun=create, lr=0.1))
    optimizer = create()
    for grad in grads:
        optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
    return optimizer
== a type that a parameter with a default gives
the schedule is not in reach at train.py:11, where the optimizer is made
args:
loop: optimizer = train_step(optimizer, grad)
above:
    import jax.numpy as jnp

    def train_step(optimizer, grad, dtype=jnp.float32):
        lr = jnp.asarray(0.1 * 0.9 ** optimizer.state.step, dtype=dtype)
        return optimizer.apply_gradient(grad, learning_rate=lr)
== the step changes what it is made of
what it is made of changes before the step is taken
args: config
loop: optimizer = train_step(optimizer, grad, config)
above:
    def train_step(optimizer, grad, config):
        lr = config.base * 0.9 ** optimizer.state.step
        config.base = 0.99 * config.base
        return optimizer.apply_gradient(grad, learning_rate=lr)
== a counter that goes on when the step is not taken
`step` of `TrainState` does not always count the steps of its optimizer (train.py:16)
-     return state.replace(step=state.step + 1, optimizer=optimizer)
+     optimizer = jax.tree_util.tree_map(f, optimizer, state.optimizer)
+     return state.replace(step=state.step + 1, optimizer=optimizer)
== fields that are unpacked
`step` of `TrainState` does not always count the steps of its optimizer (train.py:18)
-     state = TrainState(step=0, optimizer=optim.Adam(1e-3).create(params), model_state=extra)
+     state = TrainState(*[0, optim.Adam(1e-3).create(params), extra])
== a field that is doubled
`step` of `TrainState` does not always count the steps of its optimizer (train.py:15)
-     return state.replace(step=state.step + 1, optimizer=optimizer)
+     return state.replace(step=state.step * 2, optimizer=optimizer)
== an object is changed between the step and the count
`step` of `TrainState` does not always count the steps of its optimizer (train.py:16)
-     return state.replace(step=state.step + 1, optimizer=optimizer)
+     state = state.replace(model_state=None)
+     return state.replace(step=state.step + 1, optimizer=optimizer)
== the counter of another object
it does not come from the optimizer's own step
- def train_step(state, grad, schedule):
-     optimizer = state.optimizer.apply_gradient(grad, learning_rate=schedule(state.step))
+ def train_step(state, other, grad, schedule):
+     optimizer = state.optimizer.apply_gradient(grad, learning_rate=schedule(other.step))

-     for grad in grads:
+     other = create(params, extra)
+     for grad in grads:
"""


@pytest.mark.parametrize(("why", "text"), table(KEPT, values=2))
def test_what_stays_a_rate_that_each_step_sets(why: str, text: str) -> None:
    result = result_of(legacy(text))

    assert {site.status for site in result.sites} == {"rewritten"}
    notes = {site.note for site in result.sites if site.code == "FO204"} - {""}
    told = f"The learning rate is set before this step, and is no schedule: {why}."
    assert notes == {told}
    after = result.after.decode()
    assert "learning_rate=" in after
    assert "tree_set(" in after
