"""Learning rates that become schedules in the transformation."""

from __future__ import annotations

from codemods.edits import Edit
from codemods.idioms.schedules import BY_OPTAX, CODE
from codemods.rules import rule
from codemods.rules.context import Context
from codemods.uses import Use


@rule(
    CODE,
    "a learning rate that follows the optimizer's own step is a schedule",
    "schedule",
    before="""\
optimizer = optim.Adam(learning_rate).create(params)
learning_rate_fn = create_learning_rate_fn(config)

def train_step(optimizer, batch):
    ...
    lr = learning_rate_fn(optimizer.state.step)
    return optimizer.apply_gradient(grad, learning_rate=lr)
""",
    after="""\
learning_rate_fn = create_learning_rate_fn(config)
tx = optax.adam(learning_rate_fn)
optimizer = TrainState.create(apply_fn=model.apply, params=params, tx=tx)

def train_step(optimizer, batch):
    ...
    return optimizer.apply_gradients(grads=grad)
""",
)
def schedule(use: Use, context: Context) -> Edit:
    """A step that gives `learning_rate=f(optimizer.state.step)` computes what `optax.adam(f)` computes by itself. So the function
    goes to the constructor, and the argument goes away, along with the variables and parameters that nothing else uses.

    This holds where all steps of an optimizer give the same function of its own step, and where that function is known, or can
    be made, at the place that makes the optimizer, through parameters if need be. A statement that makes it moves up only if it
    does nothing else and finds nothing changed. In every other case the rate is an injected hyperparameter that is set before
    the step (FO204), and a note says why.
    """
    return context.schedules.edit(use)


@rule(
    BY_OPTAX,
    "a schedule written by hand is the one of optax",
    "standard",
    before="schedule = lambda step: 0.1 * jnp.minimum(1.0, step / warmup_steps)\n",
    after="schedule = optax.linear_schedule(0.0, end_value=0.1, transition_steps=warmup_steps)\n",
)
def standard(use: Use, context: Context) -> Edit:
    """A lambda, or arithmetic within a step, that is the rate of an optimizer (FO404) and computes what a schedule of optax does
    is said by that: linear, exponential, in stairs or not, polynomial, cosine, two or three constants in turn, and a linear
    warm-up with a cosine, an exponential or a linear decay behind it. Both are computed with several draws of numbers for
    whatever is not known, for the first steps, around each number that the schedule may turn at, and for late steps, and have to
    agree in all: a cosine that goes on beyond its end is none of optax's. A schedule of optax is made once, so what it is made
    of must not change while steps are taken.
    """
    return context.schedules.edit(use)
