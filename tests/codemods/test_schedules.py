"""Learning rates that become schedules in the transformation. First, those that must not, each with the reason that is told."""

from __future__ import annotations

import pytest

from codemods import Options
from codemods.model import Style
from tests.codemods.programs import migrated, program, project, result_of

STEP = """
def train_step(optimizer, batch, learning_rate_fn):
    lr = learning_rate_fn(optimizer.state.step)
    grad = jax.grad(loss_fn)(optimizer.target, batch)
    return optimizer.apply_gradient(grad, learning_rate=lr)
"""

KEPT = {
    "a step of the caller's own may be another number": (
        """
        import jax
        from flax import optim

        def train_step(optimizer, grad, lr):
            return optimizer.apply_gradient(grad, learning_rate=lr)

        def train(params, grads, schedule, start):
            optimizer = optim.Adam(1e-3).create(params)
            for step, grad in enumerate(grads, start):
                optimizer = train_step(optimizer, grad, schedule(step))
            return optimizer
        """,
        "it does not come from the optimizer's own step",
    ),
    "the step of another optimizer": (
        """
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
        """,
        "it does not come from the optimizer's own step",
    ),
    "the step is taken between reading the count and using it": (
        """
        from flax import optim

        def train(params, grads, schedule):
            optimizer = optim.Momentum(0.1).create(params)
            step = optimizer.state.step
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(step))
            return optimizer
        """,
        "it does not come from the optimizer's own step",
    ),
    "two steps that compute it in different ways": (
        """
        from flax import optim

        def warm(optimizer, grad):
            return optimizer.apply_gradient(grad, learning_rate=0.1 * optimizer.state.step)

        def cool(optimizer, grad):
            return optimizer.apply_gradient(grad, learning_rate=0.1 / optimizer.state.step)

        def train(params, grads):
            optimizer = optim.Momentum(0.1).create(params)
            for grad in grads:
                optimizer = cool(warm(optimizer, grad), grad)
            return optimizer
        """,
        "not all steps compute it in the same way",
    ),
    "two functions for one step": (
        """
        from flax import optim

        def train_step(optimizer, grad, schedule):
            return optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))

        def train(params, grads, slow, fast):
            optimizer = optim.Momentum(0.1).create(params)
            for grad in grads:
                optimizer = train_step(optimizer, grad, slow)
                optimizer = train_step(optimizer, grad, fast)
            return optimizer
        """,
        "the schedule is not in reach at train.py:7, where the optimizer is made",
    ),
    "a function that is exchanged half-way": (
        """
        from flax import optim

        def train(params, grads, slow, fast):
            optimizer = optim.Momentum(0.1).create(params)
            schedule = slow
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
                if optimizer.state.step > 100:
                    schedule = fast
            return optimizer
        """,
        "`schedule` has more than one value",
    ),
    "a rate that is changed after the schedule gave it": (
        """
        from flax import optim

        def train(params, grads, schedule, factor):
            optimizer = optim.Momentum(0.1).create(params)
            for grad in grads:
                lr = schedule(optimizer.state.step)
                lr *= factor
                optimizer = optimizer.apply_gradient(grad, learning_rate=lr)
            return optimizer
        """,
        "`lr` has more than one value",
    ),
    "the schedule is made by something that does more, after the optimizer": (
        """
        from flax import optim

        def make_schedule(registry):
            registry.append("schedule")
            return lambda step: 0.1 / (step + 1)

        def train(params, grads, registry):
            optimizer = optim.Momentum(0.1).create(params)
            registry.append("optimizer")
            schedule = make_schedule(registry)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """,
        "`schedule` is made after the optimizer, by something that may do more than that",
    ),
    "the schedule depends on the optimizer": (
        """
        from flax import optim

        def train(params, grads, config):
            optimizer = optim.Momentum(0.1).create(params)
            config.peak = largest(optimizer.target)
            schedule = lambda step: config.peak / (step + 1)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """,
        "`config`, of which `schedule` is made, changes after the optimizer was made",
    ),
    "what the schedule is made of is updated first": (
        """
        from flax import optim

        def train(params, grads, config):
            optimizer = optim.Momentum(0.1).create(params)
            config.update(peak=0.2)
            schedule = lambda step: config.peak / (step + 1)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """,
        "`config`, of which `schedule` is made, changes after the optimizer was made",
    ),
    "a call that may be one of another function": (
        """
        from flax import optim

        class Trainer:
            def create(self, params):
                return optim.Adam().create(params)

        class Other(Trainer):
            def create(self, params):
                return optim.Momentum().create(params)

        def train(params, grads, quick):
            schedule = lambda step: 0.1 / (step + 1)
            trainer = Other() if quick else Trainer()
            optimizer = trainer.create(params)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """,
        "a call of `create` may be one of another function",
    ),
    "a schedule that only one branch makes": (
        """
        from flax import optim

        def train(params, grads, decays):
            optimizer = optim.Momentum(0.1).create(params)
            if decays:
                schedule = lambda step: 0.1 / (step + 1)
                for grad in grads:
                    optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """,
        "`schedule` is made in a block of its own",
    ),
    "another program restores what this one stores": (
        """
        from flax import optim
        from flax.training import checkpoints

        def train(params, grads, schedule):
            optimizer = optim.Adam().create(params)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            checkpoints.save_checkpoint("runs", optimizer, 1)

        def evaluate(params):
            return checkpoints.restore_checkpoint("runs", optim.Adam().create(params)).target
        """,
        "train.py:11 restores checkpoints into such an optimizer that takes no step",
    ),
    "what calls the function that makes the optimizer is not all in view": (
        """
        import jax
        from flax import optim

        def make(params, rate):
            return optim.Adam(rate).create(params)

        def train(params, grads, run):
            schedule = lambda step: 0.1 / (step + 1)
            optimizer = run(make, params)
            optimizer = make(params, 0.1)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """,
        "not every call of `make` is in view",
    ),
    "a counter that goes on when the step is not taken": (
        """
        import jax
        import jax.numpy as jnp
        from flax import optim, struct

        @struct.dataclass
        class TrainState:
            step: int
            optimizer: optim.Optimizer

        def train_step(state, grad, schedule):
            new = state.optimizer.apply_gradient(grad, learning_rate=schedule(state.step))
            kept = jax.tree_util.tree_map(lambda x, y: jnp.where(finite(grad), x, y), new, state.optimizer)
            return state.replace(step=state.step + 1, optimizer=kept)

        def train(params, grads, schedule):
            state = TrainState(step=0, optimizer=optim.Adam(1e-3).create(params))
            for grad in grads:
                state = train_step(state, grad, schedule)
            return state
        """,
        "`step` of `TrainState` does not always count the steps of its optimizer (train.py:13)",
    ),
    "a rate that is computed outside, with plain numbers": (
        """
        from flax import optim

        def learning_rate_fn(step):
            return 0.1 if step < 100 else 0.01

        def train_step(optimizer, grad, lr):
            return optimizer.apply_gradient(grad, learning_rate=lr)

        def train(params, grads):
            optimizer = optim.Adam().create(params)
            for grad in grads:
                optimizer = train_step(optimizer, grad, learning_rate_fn(optimizer.state.step))
            return optimizer
        """,
        "it is computed outside of the step, by something that may need a plain number",
    ),
    "a rate for the optimizer as it was before": (
        """
        from flax import optim

        def train_step(optimizer, grad, lr):
            optimizer = optimizer.replace(target=grad)
            return optimizer.apply_gradient(grad, learning_rate=lr)

        def train(params, grads, other):
            optimizer = optim.Adam().create(params)
            for grad in grads:
                optimizer = train_step(optimizer, grad, 0.1 / (1 + optimizer.state.step))
            return optimizer
        """,
        "it does not come from the optimizer's own step",
    ),
    "the step is handed on in a tuple": (
        """
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
        """,
        "the schedule is not in reach at train.py:11, where the optimizer is made",
    ),
    "the class is chosen at run time": (
        """
        from flax import optim

        def train(params, grads, schedule, arguments):
            optimizer = optim.Adam(**arguments).create(params)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """,
        "the optimizer is not made by a plain constructor",
    ),
}


@pytest.mark.parametrize(("text", "why"), KEPT.values(), ids=KEPT)
def test_what_stays_a_rate_that_each_step_sets(text: str, why: str) -> None:
    result = result_of(text)

    assert {site.status for site in result.sites} == {"rewritten"}
    notes = {site.note for site in result.sites if site.code == "FO204"} - {""}
    assert notes == {f"The learning rate is set before this step, and is no schedule: {why}."}
    after = result.after.decode()
    assert "learning_rate=" in after
    assert "opt_state, learning_rate=" in after


BECOME = {
    "made before the optimizer": (
        """
        import optax
        from flax import optim

        def train(params, grads, peak):
            schedule = optax.cosine_decay_schedule(peak, 100)
            optimizer = optim.Adam(peak, beta1=0.8).create(params)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))
            return optimizer
        """,
        """
        import optax
        from flax.training import train_state

        def train(params, grads, peak):
            schedule = optax.cosine_decay_schedule(peak, 100)
            optimizer = train_state.TrainState.create(
                apply_fn=None, params=params, tx=optax.adam(schedule, b1=0.8)
            )
            for grad in grads:
                optimizer = optimizer.apply_gradients(grads=grad)
            return optimizer
        """,
    ),
    "made after it, and handed to the step as a keyword that nothing needs any more": (
        """
        import functools

        import jax
        from flax import optim

        def create_schedule(peak, warmup):
            return lambda step: peak * jax.numpy.minimum(1.0, step / warmup)

        def create_optimizer(params, learning_rate, weight_decay):
            definition = optim.Adam(learning_rate, weight_decay=weight_decay)
            return definition.create(params)

        def train_step(optimizer, grad, learning_rate_fn):
            '''One step.

            Args:
              optimizer: what takes it.
              learning_rate_fn (callable): the learning rate,
                as a function of the step.
              grad: the gradient.
            '''
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
        """,
        """
        import jax
        import optax
        from flax.training import train_state

        def create_schedule(peak, warmup):
            return lambda step: peak * jax.numpy.minimum(1.0, step / warmup)

        def create_optimizer(params, learning_rate, weight_decay):
            definition = optax.adamw(learning_rate, weight_decay=weight_decay)
            return train_state.TrainState.create(apply_fn=None, params=params, tx=definition)

        def train_step(optimizer, grad):
            '''One step.

            Args:
              optimizer: what takes it.
              grad: the gradient.
            '''

            return optimizer.apply_gradients(grads=grad)

        def train(params, grads, config):
            warmup = config.warmup * 10
            # Warm up first.
            learning_rate_fn = create_schedule(config.rate, warmup)
            # The optimizer.
            optimizer = create_optimizer(params, learning_rate_fn, 1e-4)

            p_train_step = jax.jit(train_step)
            for grad in grads:
                optimizer = p_train_step(optimizer, grad)
            return optimizer
        """,
    ),
    "the metric that logs the rate keeps working": (
        """
        import functools
        import jax
        from flax import optim

        def train_step(optimizer, grad, learning_rate_fn):
            step = optimizer.state.step
            lr = learning_rate_fn(step)
            optimizer = optimizer.apply_gradient(grad, learning_rate=lr)
            return optimizer, {"learning_rate": lr}

        def train(params, grads):
            schedule = lambda step: 0.1 / (step + 1)
            optimizer = optim.Momentum().create(params)
            p_step = jax.jit(functools.partial(train_step, learning_rate_fn=schedule))
            for grad in grads:
                optimizer, metrics = p_step(optimizer, grad)
            return optimizer
        """,
        """
        import functools
        import jax
        import optax
        from flax.training import train_state

        def train_step(optimizer, grad, learning_rate_fn):
            step = optimizer.step
            lr = learning_rate_fn(step)
            optimizer = optimizer.apply_gradients(grads=grad)
            return optimizer, {"learning_rate": lr}

        def train(params, grads):
            schedule = lambda step: 0.1 / (step + 1)
            optimizer = train_state.TrainState.create(
                apply_fn=None, params=params, tx=optax.sgd(learning_rate=schedule, momentum=0.9)
            )
            p_step = jax.jit(functools.partial(train_step, learning_rate_fn=schedule))
            for grad in grads:
                optimizer, metrics = p_step(optimizer, grad)
            return optimizer
        """,
    ),
    "the step function is given the rate, by all who call it": (
        """
        import jax
        from flax import optim

        @jax.jit
        def train_step(optimizer, grad, lr):
            return optimizer.apply_gradient(grad, learning_rate=lr)

        def train(params, grads, base, decay):
            optimizer = optim.Adam().create(params)
            learning_rate_fn = lambda step: base / (1 + decay * step)
            for grad in grads:
                lr = learning_rate_fn(optimizer.state.step)
                optimizer = train_step(optimizer, grad, lr)
                print(lr)
            return optimizer
        """,
        """
        import jax
        import optax
        from flax.training import train_state

        @jax.jit
        def train_step(optimizer, grad):
            return optimizer.apply_gradients(grads=grad)

        def train(params, grads, base, decay):
            learning_rate_fn = lambda step: base / (1 + decay * step)
            optimizer = train_state.TrainState.create(
                apply_fn=None, params=params, tx=optax.adam(learning_rate=learning_rate_fn)
            )
            for grad in grads:
                lr = learning_rate_fn(optimizer.step)
                optimizer = train_step(optimizer, grad)
                print(lr)
            return optimizer
        """,
    ),
    "so that nobody needs it any more": (
        """
        import jax
        from flax import optim

        def train_step(optimizer, grad, lr):
            return optimizer.apply_gradient(grad, learning_rate=lr)

        def train(params, grads, base):
            optimizer = optim.Adam(base).create(params)
            step = jax.jit(train_step)
            for grad in grads:
                lr = base / (1 + optimizer.state.step)
                optimizer = step(optimizer, grad, lr=lr)
            return optimizer
        """,
        """
        import jax
        import optax
        from flax.training import train_state

        def train_step(optimizer, grad):
            return optimizer.apply_gradients(grads=grad)

        def train(params, grads, base):
            optimizer = train_state.TrainState.create(
                apply_fn=None, params=params, tx=optax.adam(lambda step: base / (1 + step))
            )
            step = jax.jit(train_step)
            for grad in grads:
                optimizer = step(optimizer, grad)
            return optimizer
        """,
    ),
    "arithmetic in the step": (
        """
        from flax import optim

        def train(params, grads, peak):
            optimizer = optim.Momentum(peak).create(params)
            for grad in grads:
                count = optimizer.state.step + 1
                optimizer = optimizer.apply_gradient(grad, learning_rate=peak / count)
            return optimizer
        """,
        """
        import optax
        from flax.training import train_state

        def train(params, grads, peak):
            optimizer = train_state.TrainState.create(
                apply_fn=None,
                params=params,
                tx=optax.sgd(lambda step: peak / (step + 1), momentum=0.9),
            )
            for grad in grads:
                optimizer = optimizer.apply_gradients(grads=grad)
            return optimizer
        """,
    ),
    "a constant": (
        """
        from flax import optim

        def train(params, grads):
            optimizer = optim.Momentum().create(params)
            for grad in grads:
                optimizer = optimizer.apply_gradient(grad, learning_rate=0.3)
            return optimizer
        """,
        """
        import optax
        from flax.training import train_state

        def train(params, grads):
            optimizer = train_state.TrainState.create(
                apply_fn=None, params=params, tx=optax.sgd(learning_rate=0.3, momentum=0.9)
            )
            for grad in grads:
                optimizer = optimizer.apply_gradients(grads=grad)
            return optimizer
        """,
    ),
    "a counter beside the optimizer that always agrees, one ahead": (
        """
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
        """,
        """
        from typing import Callable

        import optax
        from flax.training import train_state

        class TrainState(train_state.TrainState):
            pass

        def create_state(params, decay, learning_rate_fn: Callable[[int], float]):
            if decay:
                tx = optax.adamw(
                    learning_rate=lambda step: learning_rate_fn(step + 1), weight_decay=decay
                )
            else:
                tx = optax.adam(learning_rate=lambda step: learning_rate_fn(step + 1))
            return TrainState.create(apply_fn=None, params=params, tx=tx)

        def train_step(state, grad):
            return state.apply_gradients(grads=grad)

        def train(params, grads):
            learning_rate_fn = lambda step: 0.1 / step
            state = create_state(params, 0.0, learning_rate_fn)
            for grad in grads:
                state = train_step(state, grad)
            return state
        """,
    ),
    "optimize": (
        """
        from flax import optim

        def loss_fn(params):
            return params["w"] ** 2

        def train(params, steps):
            optimizer = optim.Momentum(0.1).create(params)
            for _ in range(steps):
                optimizer, loss = optimizer.optimize(loss_fn, learning_rate=0.1 * 0.9 ** optimizer.state.step)
            return optimizer
        """,
        """
        import jax
        import optax
        from flax.training import train_state

        def loss_fn(params):
            return params["w"] ** 2

        def train(params, steps):
            optimizer = train_state.TrainState.create(
                apply_fn=None,
                params=params,
                tx=optax.sgd(
                    optax.exponential_decay(0.1, transition_steps=1, decay_rate=0.9),
                    momentum=0.9,
                ),
            )
            for _ in range(steps):
                loss, grad = jax.value_and_grad(loss_fn)(optimizer.params)
                optimizer = optimizer.apply_gradients(grads=grad)
            return optimizer
        """,
    ),
}


@pytest.mark.parametrize(("before", "after"), BECOME.values(), ids=BECOME)
def test_what_becomes_a_schedule(before: str, after: str) -> None:
    result = migrated(before)

    assert result == program(after)
    assert migrated(result) == result


TAKEN_AWAY = {
    "the first": ("(learning_rate_fn, optimizer, grad)", "(optimizer, grad)"),
    "the last": ("(optimizer, grad, learning_rate_fn)", "(optimizer, grad)"),
    "one by keyword, and the star": ("(optimizer, grad, *, learning_rate_fn)", "(optimizer, grad)"),
    "one by keyword behind the rest": ("(optimizer, grad, *more, learning_rate_fn)", "(optimizer, grad, *more)"),
    "one by keyword ahead of others": ("(optimizer, grad, *, learning_rate_fn, **more)", "(optimizer, grad, **more)"),
    "the first of two by keyword": ("(optimizer, *, learning_rate_fn, grad)", "(optimizer, *, grad)"),
    "the last of two by keyword": ("(optimizer, *, grad, learning_rate_fn)", "(optimizer, *, grad)"),
    "all on lines of their own": (
        "(\n    optimizer,\n    grad,\n    *,\n    learning_rate_fn,\n)",
        "(\n    optimizer,\n    grad,\n)",
    ),
}


@pytest.mark.parametrize(("before", "after"), TAKEN_AWAY.values(), ids=TAKEN_AWAY)
@pytest.mark.parametrize("first", ["print(grad)", '"""One step, """ "and one only."'])
def test_parameters_that_nothing_needs_any_more(before: str, after: str, first: str) -> None:
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
}


@pytest.mark.parametrize(("parameters", "call", "new", "new_call"), ADDED.values(), ids=ADDED)
def test_functions_that_make_the_optimizer_get_a_parameter(parameters: str, call: str, new: str, new_call: str) -> None:
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


def test_the_factory_in_another_file_gets_a_parameter() -> None:
    files = project(
        {
            "models": """
                from flax import optim

                def create_optimizer(params, config):
                    return optim.Adam(weight_decay=config.decay).create(params)
                """,
            "train": """
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
                """,
        }
    )

    models, train = (files[name].after.decode() for name in ("models", "train"))
    assert "def create_optimizer(params, config, learning_rate_fn):\n" in models
    assert "optax.adamw(learning_rate=learning_rate_fn, weight_decay=config.decay)" in models
    assert "models.create_optimizer(params, config, learning_rate_fn)" in train
    assert "optimizer = train_step(optimizer, grad)\n" in train
    assert "def train_step(optimizer, grad):\n" in train


def test_two_groups_of_parameters_have_one_schedule() -> None:
    result = migrated(
        """
        from flax import optim

        def schedule(step):
            return 0.1 / (step + 1)

        def train(params, grads, rate):
            kernels = optim.ModelParamTraversal(lambda path, _: "kernel" in path)
            others = optim.ModelParamTraversal(lambda path, _: "kernel" not in path)
            optimizer = optim.MultiOptimizer(
                (kernels, optim.Momentum(rate, beta=0.8)), (others, optim.GradientDescent(rate))
            ).create(params)
            for grad in grads:
                lr = schedule(optimizer.state[0].step)
                optimizer = optimizer.apply_gradient(grad, learning_rate=lr)
            return optimizer
        """
    )

    assert "(kernels, optax.sgd(schedule, momentum=0.8)), (others, optax.sgd(schedule))" in result
    assert "opt_state" not in result


def test_two_optimizers_leave_nothing_of_their_rates_in_a_function_of_both() -> None:
    assert migrated(
        """
        from flax import optim

        def g_rate(step):
            return 0.1 / (1 + step)

        def d_rate(step):
            return 0.2 / (1 + step)

        def train_step(g, d, grads, g_lr, d_lr):
            g = g.apply_gradient(grads, learning_rate=g_lr)
            d = d.apply_gradient(grads, learning_rate=d_lr)
            return g, d

        def train(g_params, d_params, batches):
            g = optim.Adam(0.1).create(g_params)
            d = optim.Adam(0.1).create(d_params)
            for batch in batches:
                g, d = train_step(g, d, batch, g_rate(g.state.step), d_lr=d_rate(d.state.step))
            return g, d
        """
    ) == program(
        """
        import optax
        from flax.training import train_state

        def g_rate(step):
            return 0.1 / (1 + step)

        def d_rate(step):
            return 0.2 / (1 + step)

        def train_step(g, d, grads):
            g = g.apply_gradients(grads=grads)
            d = d.apply_gradients(grads=grads)
            return g, d

        def train(g_params, d_params, batches):
            g = train_state.TrainState.create(
                apply_fn=None, params=g_params, tx=optax.adam(g_rate)
            )
            d = train_state.TrainState.create(
                apply_fn=None, params=d_params, tx=optax.adam(d_rate)
            )
            for batch in batches:
                g, d = train_step(g, d, batch)
            return g, d
        """
    )


def test_two_optimizers_get_their_schedules_as_parameters_of_one_function() -> None:
    after = migrated(
        """
        from flax import optim

        def create(g, d):
            return optim.Adam(0.1).create(g), optim.Adam(0.1).create(d)

        def train(g_params, d_params, batches):
            g_rate = make_rate(0.1)
            d_rate = make_rate(0.2)
            g, d = create(g_params, d_params)
            for batch in batches:
                g = g.apply_gradient(batch, learning_rate=g_rate(g.state.step))
                d = d.apply_gradient(batch, learning_rate=d_rate(d.state.step))
            return g, d
        """
    )

    assert "def create(g, d, g_rate, d_rate):\n" in after
    assert "    g, d = create(g_params, d_params, g_rate, d_rate)\n" in after


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
    "Ramp()": False,
    "unknown(0.1)": False,
}


@pytest.mark.parametrize(("schedule", "moves"), MAKERS.items(), ids=MAKERS)
def test_only_a_schedule_that_does_nothing_else_moves_up(schedule: str, moves: bool) -> None:
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

    assert "def train(g_params, d_params, batches):\n    schedule = lambda step: make_rate(step)\n" in after
    assert after.count("schedule = lambda") == 1
    assert after.count("optax.adam(schedule)") == 2


def test_a_parameter_whose_position_counts_stays() -> None:
    result = migrated(
        """
        import jax
        from flax import optim

        def train_step(optimizer, schedule, grad):
            return optimizer.apply_gradient(grad, learning_rate=schedule(optimizer.state.step))

        def train(params, grads):
            schedule = lambda step: 0.1 / (step + 1)
            optimizer = optim.Adam(schedule(0)).create(params)
            jitted = jax.jit(train_step, static_argnums=(1,))
            for grad in grads:
                optimizer = jitted(optimizer, schedule, grad)
            return optimizer
        """
    )

    assert "optax.adam(schedule)" in result
    assert "jitted(optimizer, schedule, grad)" in result


@pytest.mark.parametrize("options", [Options(ignore=("FO404",)), Options(partial=True)], ids=["ignored", "partial"])
def test_on_demand_the_rate_stays_one_that_each_step_sets(options: Options) -> None:
    before, _ = BECOME["made before the optimizer"]

    assert "opt_state, learning_rate=schedule(optimizer.step)" in migrated(before, options)
