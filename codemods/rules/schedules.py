"""Learning rates that become schedules in the transformation."""

from __future__ import annotations

from codemods.analysis.uses import Use
from codemods.idioms.schedules import CODE
from codemods.rewriting.edits import Edit
from codemods.rules import rule
from codemods.rules.context import Context


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
    """A step that gives `learning_rate=f(optimizer.state.step)` computes what `optax.adam(f)`
    computes by itself. So the function goes to the constructor, and the argument goes away, along
    with the variables and parameters that nothing else uses.

    This holds where all steps of an optimizer give the same function of its own step, and where
    that function is known, or can be made, at the place that makes the optimizer, through
    parameters if need be. A statement that makes it moves up only if it does nothing else and finds
    nothing changed. A step that the program keeps beside the optimizer will do where each place
    that may make or change one of the two is in view, and lets both go together; for the
    transformation counts by itself, whatever else is set. In every other case the rate is an
    injected hyperparameter that is set before the step (FO204), and a note says why.

    The function stays the author's own, also where one of optax's looks like it, because optax's
    have other edges and other rounding: with no transition steps `optax.linear_schedule` stays at
    its first value for ever, `optax.cosine_decay_schedule` raises, and `optax.exponential_decay`
    computes in float32 where the author's does in float64.
    """
    return context.schedules.edit(use)
