"""Gradients that are clipped by the transformation."""

from __future__ import annotations

from codemods.analysis.uses import Use
from codemods.idioms.clipping import CODE
from codemods.rewriting.edits import Edit
from codemods.rules import rule
from codemods.rules.context import Context


@rule(
    CODE,
    "clipping just before a step is the first link of the chain",
    "clipping",
    before="""\
optimizer = optim.Adam(1e-3).create(params)

def train_step(optimizer, batch):
    ...
    norm = jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grad)]))
    factor = jnp.minimum(1.0, 0.5 / norm)
    grad = jax.tree_util.tree_map(lambda g: factor * g, grad)
    return optimizer.apply_gradient(grad)
""",
    after="""\
tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))
optimizer = TrainState.create(apply_fn=model.apply, params=params, tx=tx)

def train_step(optimizer, batch):
    ...
    return optimizer.apply_gradients(grads=grad)
""",
)
def clipping(use: Use, context: Context) -> Edit:
    """Gradients that are clipped by their global norm, or by value, and then go into a step and
    nowhere else, are clipped by `optax.clip_by_global_norm` or `optax.clip` instead. If that is
    subject to a condition, the link is `optax.clip_by_global_norm(limit) if condition else
    optax.identity()`.

    This holds where all steps of the optimizer clip alike, where the limit is known, or can be made
    known, at the place that makes the optimizer and does not change behind that, and where the
    leaves are scaled in one of a dozen forms that are shown, case by case, to be optax's for norms
    of all kinds: zero, infinite and not a number among them. For every limit, 0, negative and
    infinite ones, too, `jnp.minimum(1.0, limit / norm)` and `jnp.where(norm < limit, …)` are so.
    `norm <= limit`, `limit / jnp.maximum(norm, limit)` and `g / jnp.maximum(1.0, norm / limit)` are
    so for a positive number that is written there, and those that multiply a leaf by the limit
    before they divide if it is not above 1, so that nothing overflows. An epsilon in the divisor is
    another function. Leaves have one real type. What logs the norm stays. In every other case the
    code stays as it is, and a note says why if it looked like clipping.
    """
    return context.clippings.edit(use)
