"""Learning rates that become schedules in the transformation. Those that must not are in test_rates_that_stay."""

import ast

import pytest

from codemods import Options
from codemods.model import Style
from tests.codemods.idioms.schedules import alone, legacy
from tests.codemods.programs import files, migrated, program, project, result_of, table

BECOME = '''
== made before the optimizer
args: peak
made: optim.Adam(peak, beta1=0.8).create(params)
above: import optax
ahead: schedule = optax.cosine_decay_schedule(peak, 100)
> tx=optax.adam(schedule, b1=0.8)
> optimizer = optimizer.apply_gradients(grads=grad)
== a count in one line with another statement
rate: lr
first: step = optimizer.state.step; lr = schedule(step)
> tx=optax.sgd(schedule, momentum=0.9)
> step = jax.numpy.asarray(optimizer.step, jax.numpy.int32)
>         lr = schedule(step)
>         optimizer = optimizer.apply_gradients(grads=grad)
== the same at each step
rate: config.lr + 0 * optimizer.state.step
args: config
> tx=optax.sgd(lambda step: config.lr + 0 * step, momentum=0.9)
> optimizer = optimizer.apply_gradients(grads=grad)
== of numbers that one statement sets
rate: BASE * DECAY ** optimizer.state.step
args:
above: BASE, DECAY = 0.1, 0.9
> tx=optax.sgd(lambda step: BASE * DECAY ** step, momentum=0.9)
> optimizer = optimizer.apply_gradients(grads=grad)
== by a method of the step
rate: 0.1 / (1 + optimizer.state.step.astype(float))
args:
> tx=optax.sgd(lambda step: 0.1 / (1 + step.astype(float)), momentum=0.9)
> optimizer = optimizer.apply_gradients(grads=grad)
== in place of an argument of `partial`
args: schedule, resume
made: make(params)
above:
    import functools

    def create(params, lr):
        return optim.Momentum(lr).create(params)
ahead: make = functools.partial(create, lr=0.1)
behind:
    if resume:
        optimizer = make(resume)
> tx=optax.sgd(lr, momentum=0.9)
> make = functools.partial(create, lr=schedule)
> optimizer = optimizer.apply_gradients(grads=grad)
== given to the constructor already
made: create(params, schedule)
above:
    def create(params, rate):
        return optim.Momentum(rate).create(params)
> tx=optax.sgd(rate, momentum=0.9)
> optimizer = create(params, schedule)
> optimizer = optimizer.apply_gradients(grads=grad)
== a parameter that a decorator counts
args: learning_rate_fn
loop: optimizer = train_step(optimizer, grad, learning_rate_fn)
above:
    import functools, jax

    @functools.partial(jax.jit, static_argnums=(2,))
    def train_step(optimizer, grad, learning_rate_fn):
        lr = learning_rate_fn(optimizer.state.step)
        return optimizer.apply_gradient(grad, learning_rate=lr)
> @functools.partial(jax.jit, static_argnums=(2,))
> def train_step(optimizer, grad, learning_rate_fn):
> return optimizer.apply_gradients(grads=grad)
> tx=optax.sgd(learning_rate_fn, momentum=0.9)
> optimizer = train_step(optimizer, grad, learning_rate_fn)
== a parameter of a function that may be another
args: learning_rate_fn, frozen
loop: optimizer = step(optimizer, grad, learning_rate_fn)
above:
    def train_step(optimizer, grad, learning_rate_fn):
        lr = learning_rate_fn(optimizer.state.step)
        return optimizer.apply_gradient(grad, learning_rate=lr)

    def quiet_step(optimizer, grad, learning_rate_fn):
        return optimizer
behind: step = quiet_step if frozen else train_step
> def train_step(optimizer, grad, learning_rate_fn):
> return optimizer.apply_gradients(grads=grad)
> tx=optax.sgd(learning_rate_fn, momentum=0.9)
> optimizer = step(optimizer, grad, learning_rate_fn)
== read of an object ahead of a call out of view
import jax
import jax.numpy as jnp
from flax import optim

def train_step(optimizer, batch, model, rate):
    def loss_fn(params):
        return jnp.mean(model.apply({"params": params}, batch) ** 2)
    lr = rate(optimizer.state.step)
    grad = jax.grad(loss_fn)(optimizer.target)
    return optimizer.apply_gradient(grad, learning_rate=lr)

def train(model, params, config, batches):
    optimizer = optim.Adam(config.lr).create(params)
    rate = lambda step: config.lr * jnp.minimum(1.0, step / config.warmup)
    for batch in batches:
        optimizer = train_step(optimizer, batch, model, rate)
    return optimizer.target
> def train_step(optimizer, batch, model):
> grad = jax.grad(loss_fn)(optimizer.params)
> return optimizer.apply_gradients(grads=grad)
> optimizer = train_state.TrainState.create(apply_fn=None, params=params, tx=optax.adam(rate))
> return optimizer.params
> optimizer = train_step(optimizer, batch, model)
== made after it, and handed to the step as a keyword that nothing needs any more
import functools

import jax
from flax import optim

def create_schedule(peak, warmup):
    return lambda step: peak * jax.numpy.minimum(1.0, step / warmup)

def create_optimizer(params, learning_rate, weight_decay):
    definition = optim.Adam(learning_rate, weight_decay=weight_decay)
    return definition.create(params)

def train_step(optimizer, grad, learning_rate_fn):
    """One step.

    Args:
      optimizer: what takes it.
      learning_rate_fn (callable): the learning rate,
        as a function of the step.
      grad: the gradient.
    """
    lr = learning_rate_fn(optimizer.state.step)

    return optimizer.apply_gradient(grad, learning_rate=lr)

def train(params, grads, config):
    # The optimizer.
    optimizer = create_optimizer(params, config.rate, 1e-4)

    warmup = config.warmup * 10
    # Warm up first.
    learning_rate_fn = create_schedule(config.rate, warmup)

    p_train_step = jax.jit(functools.partial(train_step, learning_rate_fn=learning_rate_fn))
    for grad in grads:
        optimizer = p_train_step(optimizer, grad)
    return optimizer
> def train_step(optimizer, grad):
> definition = optax.adamw(learning_rate, weight_decay=weight_decay)
> return train_state.TrainState.create(apply_fn=None, params=params, tx=definition)
> optimizer: what takes it.
>       grad: the gradient.
> return optimizer.apply_gradients(grads=grad)
> optimizer = create_optimizer(params, learning_rate_fn, 0.0001)
> p_train_step = jax.jit(train_step)
== a counter beside the optimizer that always agrees, one ahead
from typing import Callable

from flax import optim, struct

@struct.dataclass
class TrainState:
    step: int
    optimizer: optim.Optimizer

def create_state(params, decay):
    if decay:
        optimizer = optim.Adam(weight_decay=decay).create(params)
    else:
        optimizer = optim.Adam().create(params)
    return TrainState(step=0, optimizer=optimizer)

def train_step(state, grad, learning_rate_fn: Callable[[int], float]):
    step = state.step + 1
    lr = learning_rate_fn(step)
    optimizer = state.optimizer.apply_gradient(grad, learning_rate=lr)
    return state.replace(step=step, optimizer=optimizer)

def train(params, grads):
    learning_rate_fn = lambda step: 0.1 / step
    state = create_state(params, 0.0)
    for grad in grads:
        state = train_step(state, grad, learning_rate_fn)
    return state
> class TrainState(train_state.TrainState):
> def create_state(params, decay, learning_rate_fn: Callable[[int], float]):
> def train_step(state, grad):
> pass
> return TrainState.create(apply_fn=None, params=params, tx=tx)
> return state.apply_gradients(grads=grad)
> state = create_state(params, 0.0, learning_rate_fn)
> tx = optax.adamw(learning_rate=lambda step: learning_rate_fn(step + 1), weight_decay=decay)
> tx = optax.adam(learning_rate=lambda step: learning_rate_fn(step + 1))
> state = train_step(state, grad)
== in place of a default
from flax import optim

def create(params, lr=0.1):
    return optim.Momentum(lr).create(params)

def train(params, grads, schedule, resume):
    if resume:
        optimizer = create(params)
    else:
        optimizer = create(params, 0.2)
    for grad in grads:
        optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
    return optimizer
> return train_state.TrainState.create(apply_fn=None, params=params, tx=optax.sgd(lr, momentum=0.9))
> optimizer = create(params, lr=schedule)
> optimizer = create(params, schedule)
> optimizer = optimizer.apply_gradients(grads=grad)
== made of a flag, which is not read before it is parsed
from absl import app, flags
from flax import optim

flags.DEFINE_float("lr", 0.1, "Learning rate.")
FLAGS = flags.FLAGS
OPTIMIZER = optim.Adam()

def main(argv):
    optimizer = OPTIMIZER.create(make_params())
    for batch in batches():
        lr = FLAGS.lr / (1 + optimizer.state.step)
        optimizer = optimizer.apply_gradient(loss_grad(optimizer.target, batch), learning_rate=lr)

app.run(main)
> OPTIMIZER = optax.adam(learning_rate=lambda step: FLAGS.lr / (1 + step))
> optimizer = optimizer.apply_gradients(grads=loss_grad(optimizer.params, batch))
== a counter that `dataclasses.replace` moves on
-     return state.replace(step=state.step + 1, optimizer=optimizer)
+     return dataclasses.replace(state, step=state.step + 1, optimizer=optimizer)
> def train_step(state, grad):
> optimizer = state.optimizer.apply_gradients(grads=grad)
> state = TrainState(step=0, optimizer=train_state.TrainState.create(apply_fn=None, params=params, tx=optax.adam(schedule)), model_state=extra)
> state = train_step(state, grad)
'''
"""Each with lines that it has then, behind `>`."""


@pytest.mark.parametrize("text", table(BECOME, values=1))
def test_what_becomes_a_schedule(text: str) -> None:
    before, _, lines = text.partition("\n> ")
    result = migrated(legacy(before))

    assert "learning_rate(" not in result
    found = ast.unparse(ast.parse(result))
    assert [line for line in lines.split("\n> ") if line not in found] == []
    assert migrated(result) == result


TAKEN_AWAY = {
    "the first": ("(learning_rate_fn, optimizer, grad)", "(optimizer, grad)"),
    "the last": ("(optimizer, grad, learning_rate_fn)", "(optimizer, grad)"),
    "one by keyword, and the star": ("(optimizer, grad, *, learning_rate_fn)", "(optimizer, grad)"),
    "one by keyword behind the rest": ("(optimizer, grad, *more, learning_rate_fn)", "(optimizer, grad, *more)"),
    "one by keyword ahead of others": ("(optimizer, grad, *, learning_rate_fn, **more)", "(optimizer, grad, **more)"),
    "the first of two by keyword": ("(optimizer, *, learning_rate_fn, grad)", "(optimizer, *, grad)"),
    "the last of two by keyword": ("(optimizer, *, grad, learning_rate_fn)", "(optimizer, *, grad)"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), TAKEN_AWAY.values(), ids=TAKEN_AWAY)
@pytest.mark.parametrize("first", ["print(grad)", '"""One step, """ "and one only."'])
def test_parameters_that_nothing_needs_any_more(
    before: str, after: str, first: str
) -> None:
    step = f"""
from flax import optim

def train_step{before}:
    {first}
    return optimizer.apply_gradient(grad, learning_rate=learning_rate_fn(optimizer.state.step))

def train(params, grads, rate):
    learning_rate_fn = lambda step: rate / (step + 1)
    optimizer = optim.Adam(rate).create(params)
    for grad in grads:
        optimizer = train_step(optimizer=optimizer, grad=grad, learning_rate_fn=learning_rate_fn)
    return optimizer
"""
    assert migrated(step).partition("def train(")[0] == program(f"""
import optax
from flax.training import train_state

def train_step{after}:
    {first}
    return optimizer.apply_gradients(grads=grad)

""")


ADDED = {
    "none before": ("()", "create()", "(learning_rate_fn)", "create(learning_rate_fn)"),
    "one before": ("(rate)", "create(1)", "(rate, learning_rate_fn)", "create(1, learning_rate_fn)"),
    "only defaults": ("(rate=1)", "create()", "(learning_rate_fn, rate=1)", "create(learning_rate_fn)"),
    "a default": ("(rate, a=1)", "create(1)", "(rate, learning_rate_fn, a=1)", "create(1, learning_rate_fn)"),
    "one by keyword": (
        "(*, rate)",
        "create(rate=1)",
        "(learning_rate_fn, *, rate)",
        "create(rate=1, learning_rate_fn=learning_rate_fn)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "call", "new", "new_call"), ADDED.values(), ids=ADDED
)
def test_functions_that_make_the_optimizer_get_a_parameter(
    parameters: str, call: str, new: str, new_call: str
) -> None:
    text = """
from flax import optim
import models

def create{}:
    return optim.Adam(1e-3).create(models.params())

def train(grads, config):
    learning_rate_fn: object = lambda step: config.rate / (step + 1)
    try:
        optimizer = {}
    except ValueError as error:
        raise SystemExit(1) from error
    match config:
        case {{"name": name, **rest}}:
            print(name, rest)
        case [*rest]:
            print(rest)
    for grad in grads:
        optimizer = optimizer.apply_gradient(grad, learning_rate=learning_rate_fn(optimizer.state.step))
    return optimizer
"""
    after = migrated(text.format(parameters, call))
    assert f"def create{new}:\n" in after
    assert f"        optimizer = {new_call}\n" in after
    assert "optimizer.apply_gradients(grads=grad)\n" in after


IMPORTED = """
-- rates
def schedule(step):
    return 0.1 / (step + 1)
-- steps
from rates import schedule

def train_step(optimizer, grad):
    return optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
-- train
from flax import optim
from rates import schedule
from steps import train_step

def train(params, grads):
    optimizer = optim.Momentum(schedule(0)).create(params)
    for grad in grads:
        optimizer = train_step(optimizer, grad)
    return optimizer
"""


def test_a_function_that_the_factory_and_the_step_import() -> None:
    results = project(files(IMPORTED))

    for result in results.values():
        assert {site.status for site in result.sites} <= {"rewritten"}
    assert b"return optimizer.apply_gradients(grads=grad)\n" in results["steps"].after
    assert b"tx=optax.sgd(schedule, momentum=0.9)" in results["train"].after


FACTORY = """
-- models
from flax import optim

def create_optimizer(params, config):
    return optim.Adam(weight_decay=config.decay).create(params)
-- train
import models
import jax

def train_step(optimizer, grad, learning_rate_fn):
    return optimizer.apply_gradient(grad, learning_rate=learning_rate_fn(optimizer.state.step))

def train(params, grads, config):
    learning_rate_fn = lambda step: config.rate / (step + 1)
    optimizer = models.create_optimizer(params, config)
    for grad in grads:
        optimizer = train_step(optimizer, grad, learning_rate_fn=learning_rate_fn)
    return optimizer
"""


def test_the_factory_in_another_file_gets_a_parameter() -> None:
    models, train = (one.after.decode() for one in project(files(FACTORY)).values())
    assert "def create_optimizer(params, config, learning_rate_fn):\n" in models
    adam = "optax.adamw(learning_rate=learning_rate_fn, weight_decay=config.decay)"
    assert adam in models
    assert "models.create_optimizer(params, config, learning_rate_fn)" in train
    assert "optimizer = train_step(optimizer, grad)\n" in train
    assert "def train_step(optimizer, grad):\n" in train


LATER = """
import math
from flax import optim

class Ramp:
    def __call__(self, step):
        return 0.1 * step

def quiet(base):
    rate = base
    rate += 0.1
    low, (high, _) = 0, (1, 2)
    double = lambda value: 2 * value
    return lambda step: double(rate) * high + low

def counting(base):
    config.calls += 1
    return lambda step: base

def storing(base):
    config.low, high = 0, 1
    return lambda step: base * high

def train(params, grads):
    optimizer = optim.Adam(0.1).create(params)
    schedule = {schedule}
    for grad in grads:
        optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
    return optimizer
"""
MAKERS = {
    "quiet(math.sqrt(0.1))": True,
    "(lambda base: lambda step: base)(0.1)": True,
    "counting(0.1)": False,
    "storing(0.1)": False,
    "quiet((base := 0.1))": False,
    "Ramp()": True,
    "unknown(0.1)": False,
}


@pytest.mark.parametrize(("schedule", "moves"), MAKERS.items(), ids=MAKERS)
def test_only_a_schedule_that_does_nothing_else_moves_up(
    schedule: str, moves: bool
) -> None:
    result = result_of(LATER.replace("{schedule}", schedule))

    moved = f"def train(params, grads):\n    schedule = {schedule}\n"
    assert {site.status for site in result.sites} == {"rewritten"}
    assert (moved in result.after.decode()) == moves
    why = "`schedule` is made after the optimizer, by something that may do more than that"
    assert any(why in site.note for site in result.sites) != moves


@pytest.mark.parametrize("style", ["train-state", "functional"])
def test_a_schedule_that_two_optimizers_share_moves_ahead_of_both(style: Style) -> None:
    after = migrated(
        """
        from flax import optim

        def train(g_params, d_params, batches):
            g = optim.Adam(0.1).create(g_params)
            d = optim.Adam(0.1).create(d_params)
            schedule = lambda step: make_rate(step)
            for batch in batches:
                g = g.apply_gradient(batch, learning_rate=schedule(g.state.step))
                d = d.apply_gradient(batch, learning_rate=schedule(d.state.step))
            return g.target, d.target
        """,
        Options(style=style),
    )

    moved = "    schedule = lambda step: make_rate(step)\n"
    assert f"def train(g_params, d_params, batches):\n{moved}" in after
    assert after.count("schedule = lambda") == 1
    assert after.count("optax.adam(schedule)") == 2


def test_on_demand_the_rate_stays_one_that_each_step_sets() -> None:
    for options in (Options(ignore=("FO404",)), Options(partial=True)):
        after = migrated(alone(), options)
        assert "learning_rate=schedule(" in after
        assert "tree_set(" in after


@pytest.mark.parametrize("result", ["optimizer", "(optimizer, lr)"])
def test_a_copied_schedule_is_told_where_its_rate_stays(result: str) -> None:
    text = f"""
        def step(optimizer, grads):
            lr = 0.1 / (1 + optimizer.state.step)
            optimizer = optimizer.apply_gradient(grads, learning_rate=lr)
            return {result}

        def train(params, grads):
            return step(optim.Adam(0.1).create(params), grads)
        """
    notes = [site.note for site in result_of(text).sites]
    assert ("change both together" in str(notes)) is ("lr" in result)
