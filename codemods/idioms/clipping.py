"""Gradients that are clipped just before a step: in optax, the first link of the chain."""

from __future__ import annotations

import ast

from codemods.idioms import Unproven
from codemods.idioms.forms import Leaf, Norms
from codemods.idioms.links import Link, Links
from codemods.vocabulary import CLIP_GRADIENTS, MAP_TREES

GLOBAL, EACH = "optax.clip_by_global_norm", "optax.clip"


class Clippings(Links):
    """Gradients that are clipped by their global norm, or by value, and then only go into a step,
    are clipped by `optax.clip_by_global_norm` or `optax.clip` instead. If a condition decides about
    the clipping, the link is `optax.clip_by_global_norm(limit) if condition else optax.identity()`.

    This requires that the optimizer takes its steps at one place, that the limit is known, or can
    be passed, where the optimizer is made, and that it does not change afterwards. The code must
    call `clip_grads` of JAX's old optimizers, scale the leaves by `jnp.minimum(1.0, limit / norm)`,
    or clip them by `jnp.clip(g, -limit, limit)`. These equal optax's functions for norms and limits
    of all kinds, even 0, infinite and negative ones. An epsilon in the divisor is another function.
    All leaves must have the same real type. Code that logs the norm stays. Otherwise the code stays
    as it is, and if it looked like clipping, a note says why.
    """

    code = "FO502"
    summary = "clipping just before a step is the first link of the chain"
    kind = "clipping"
    before = """\
optimizer = optim.Adam(1e-3).create(params)

def train_step(optimizer, batch):
    ...
    norm = jnp.sqrt(sum([jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(grad)]))
    factor = jnp.minimum(1.0, 0.5 / norm)
    grad = jax.tree_util.tree_map(lambda g: factor * g, grad)
    return optimizer.apply_gradient(grad)
"""
    after = """\
tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))
optimizer = TrainState.create(apply_fn=model.apply, params=params, tx=tx)

def train_step(optimizer, batch):
    ...
    return optimizer.apply_gradients(grads=grad)
"""

    does = "clip"
    done = "clipped"
    argument = "limit of the clipping"

    def link(self, call: ast.Call) -> Link | None:
        name = self.facts.full_name(call.func)
        match call.args:
            # clip_grads(grads, limit)
            case [ast.Name() as tree, limit] if name in CLIP_GRADIENTS:
                return Link(GLOBAL, limit, tree)
            # jax.tree_map(lambda g: jnp.clip(g, -limit, limit), grads)
            case [
                ast.Lambda(args=ast.arguments(args=[leaf]), body=body),
                ast.Name() as tree,
            ] if name in MAP_TREES and not call.keywords:
                return self._of_leaf(Leaf(self.origins, leaf.arg, body, tree), tree)
        return None

    def _of_leaf(self, leaf: Leaf, tree: ast.Name) -> Link | None:
        """How a function of each leaf clips it, if it has a form that means what optax does."""
        limit = leaf.clipped_by_norm()
        if limit is not None:
            return Link(GLOBAL, limit, tree)
        limit = leaf.clipped_by_value()
        if limit is not None:
            return Link(EACH, limit, tree)
        if leaf.has_norm():
            raise Unproven(
                "nothing shows that `optax.clip_by_global_norm` does the same for all norms"
            )
        return None

    def may_go(self, value: ast.expr) -> bool:
        return Norms(self.origins).tree_of(value) is not None


IDIOM = Clippings
