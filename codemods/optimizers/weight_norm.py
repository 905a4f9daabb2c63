"""WeightNorm (Salimans and Kingma 2016): an optimizer that works on directions and scales of the weights.

Legacy: w = s·v/√(Σv² + ε), the sum over all axes but the last; gradients are pulled back to (v, s), `wn_decay`·v is added to that
of v, the inner optimizer steps both, and w is put together again. Vectors stay as they are.
optax has nothing like it, so a transformation of the file's own does the same around any inner transformation.
"""

from __future__ import annotations

import libcst as cst

from codemods.layout import arrange
from codemods.model import Form
from codemods.optimizers.base import Arguments, Converted, LegacyOptimizer, Support, parameters, refuser, renamed
from codemods.template import expression

SIGNATURE = parameters(wrapped_optimizer=None, wn_decay="0", wn_eps="1e-8")

WEIGHT_NORM = Support(
    name="weight_norm",
    source='''class WeightNormState(NamedTuple):
    """Directions and scales, in the order of the leaves, and the inner state over both."""

    direction: list
    scale: list
    inner_state: optax.OptState


def weight_norm(inner, decay=0.0, eps=1e-8):
    """Let `inner` step direction and scale of each weight (Salimans and Kingma 2016).

    A weight is scale * direction / norm(direction), the norm over all axes but the
    last. Vectors are stepped as they are. `decay` pulls directions towards zero.
    """

    def is_split(leaf):
        return leaf.size > leaf.shape[-1]

    def norm(leaf, power):
        axes = tuple(range(leaf.ndim - 1))
        return (jnp.square(leaf).sum(axes, keepdims=True) + eps) ** power

    def merge(split):
        pairs = zip(split["direction"], split["scale"])
        return [v * (s * norm(v, -0.5)) if is_split(v) else v for v, s in pairs]

    def init_fn(params):
        leaves = jax.tree_util.tree_leaves(params)
        scale = [norm(leaf, 0.5) if is_split(leaf) else () for leaf in leaves]
        direction = [v / s if is_split(v) else v for v, s in zip(leaves, scale)]
        split = {"direction": direction, "scale": scale}
        return WeightNormState(direction, scale, inner.init(split))

    def update_fn(updates, state, params):
        leaves, treedef = jax.tree_util.tree_flatten(params)
        split = {"direction": state.direction, "scale": state.scale}
        _, pull_back = jax.vjp(merge, split)
        (grads,) = pull_back(treedef.flatten_up_to(updates))
        grads["direction"] = [
            g + decay * v if is_split(v) else g
            for g, v in zip(grads["direction"], state.direction)
        ]
        steps, inner_state = inner.update(grads, state.inner_state, split)
        split = optax.apply_updates(split, steps)
        updates = [new - old for new, old in zip(merge(split), leaves)]
        state = WeightNormState(split["direction"], split["scale"], inner_state)
        return treedef.unflatten(updates), state

    return optax.GradientTransformation(init_fn, update_fn)
''',
    imports=("from typing import NamedTuple", "import jax", "import jax.numpy as jnp", "import optax"),
)
NAMES = {"wn_decay": "decay", "wn_eps": "eps"}


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    arguments = Arguments(call, SIGNATURE)
    written = [
        renamed(kept, NAMES.get(name, None if kept.keyword is None else "inner"))
        for name, kept in arguments.by_name.items()
    ]
    return Converted(arrange(call, expression(WEIGHT_NORM.name), written), (WEIGHT_NORM,))


OPTIMIZER = LegacyOptimizer(
    "WeightNorm",
    SIGNATURE,
    {"direction": "direction", "scale": "scale", "direction_state": "inner_state", "scale_state": "inner_state"},
    refuser(SIGNATURE),
    convert,
    __doc__ or "",
)
