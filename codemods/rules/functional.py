"""Optimizers that become variables for their parts."""

from __future__ import annotations

from codemods.analysis.uses import Use
from codemods.rewriting.edits import Edit
from codemods.rules import rule
from codemods.rules.context import Context


@rule(
    "FO215",
    "an optimizer is parameters and optimizer state, in the functional style",
    "functional",
    before="""\
optimizer = optim.Adam(1e-3).create(params)

def train_step(optimizer, batch):
    grads = jax.grad(loss_fn)(optimizer.target, batch)
    return optimizer.apply_gradient(grads)
""",
    after="""\
tx = optax.adam(1e-3)
opt_state = tx.init(params)

def train_step(params, opt_state, batch, tx):
    grads = jax.grad(loss_fn)(params, batch)
    updates, opt_state = tx.update(grads, opt_state, params)
    params = optax.apply_updates(params, updates)
    return params, opt_state
""",
)
def functional(use: Use, context: Context) -> Edit:
    """With `--style functional`, an optimizer becomes what Flax's guide calls the functional style:
    its parameters and its optimizer state are variables of their own, in parameters, arguments,
    what functions return, and the carries of loops. The number of steps is a third variable where
    something asks for it. Functions that take a step get the transformation as a parameter, which
    is static under `jax.jit`, or find it around them.

    This holds where every place that an optimizer goes to is in view and has a counterpart: an
    optimizer that is kept in a field of a class, or handed to a function that is not in view, stays
    a train state, and a note says why. So does one in a file that finds variables by names that
    only the run tells, as `locals()` and `eval` do.
    """
    return context.functional.edit(use)
