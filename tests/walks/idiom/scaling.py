"""Gradients that are multiplied by a number just before a step: in optax, `optax.scale`."""

from __future__ import annotations

import ast

from codemods.idioms.links import Link, Links
from codemods.vocabulary import MAP_TREES


class Scalings(Links):
    """Gradients of which each leaf is multiplied by the same value, and which then go into a step
    and nowhere else, are multiplied by `optax.scale` instead: it computes the same product.
    """

    code = "FO599"
    summary = "a factor just before a step is the first link of the chain"
    kind = "scaling"
    before = """\
optimizer = optim.Adam(1e-3).create(params)

def train_step(optimizer, batch):
    ...
    grad = jax.tree_util.tree_map(lambda g: 0.125 * g, grad)
    return optimizer.apply_gradient(grad)
"""
    after = """\
tx = optax.chain(optax.scale(0.125), optax.adam(1e-3))
optimizer = TrainState.create(apply_fn=model.apply, params=params, tx=tx)

def train_step(optimizer, batch):
    ...
    return optimizer.apply_gradients(grads=grad)
"""

    does = "scale"
    done = "scaled"
    argument = "factor"

    def link(self, call: ast.Call) -> Link | None:
        if self.facts.full_name(call.func) not in MAP_TREES:
            return None
        match call:
            # jax.tree_map(lambda g: 0.125 * g, grads)
            case ast.Call(
                args=[
                    ast.Lambda(
                        args=ast.arguments(args=[leaf]),
                        body=ast.BinOp(
                            left=ast.Constant() as factor,
                            op=ast.Mult(),
                            right=ast.Name(id=name),
                        ),
                    ),
                    ast.Name() as tree,
                ],
                keywords=[],
            ) if name == leaf.arg:
                return Link("optax.scale", factor, tree)
        return None


IDIOM = Scalings
