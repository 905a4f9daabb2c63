"""WeightNorm (Salimans and Kingma 2016): an optimizer that works on directions and scales of the weights.

Legacy: w = s·v/√(Σv² + ε), the sum over all axes but the last; gradients are pulled back to (v, s), `wn_decay`·v is added to that
of v, the inner optimizer steps both, and w is put together again. Vectors stay as they are.
optax has nothing like it, so a transformation of the file's own does the same around any inner transformation.
"""

from __future__ import annotations

import libcst as cst

from codemods.model import Form
from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, Support, parameters

SIGNATURE = parameters(wrapped_optimizer=None, wn_decay="0", wn_eps="1e-8")

WEIGHT_NORM = Support(
    name="weight_norm",
    source='''class WeightNormState(NamedTuple):
    """Direction and scale of each weight, and the inner state over both."""

    direction: optax.Params
    scale: optax.Params
    inner_state: optax.OptState


def weight_norm(inner, decay=0.0, eps=1e-8):
    """Let `inner` step direction and scale of each weight (Salimans and Kingma 2016).

    A weight is scale * direction / norm(direction), the norm over all axes but the
    last. Vectors are stepped as they are. `decay` pulls directions towards zero.
    """
    tree_map = jax.tree_util.tree_map

    def is_split(leaf):
        return leaf.size > leaf.shape[-1]

    def sum_of_squares(leaf):
        return jnp.square(leaf).sum(tuple(range(leaf.ndim - 1)), keepdims=True) + eps

    def merge(split):
        def merge_leaf(v, s):
            return v * (s * jax.lax.rsqrt(sum_of_squares(v))) if is_split(v) else v

        return tree_map(merge_leaf, split["direction"], split["scale"])

    def init_fn(params):
        def norm(w):
            return jnp.sqrt(sum_of_squares(w)) if is_split(w) else ()

        scale = tree_map(norm, params)
        direction = tree_map(lambda w, s: w / s if is_split(w) else w, params, scale)
        inner_state = inner.init({"direction": direction, "scale": scale})
        return WeightNormState(direction, scale, inner_state)

    def update_fn(updates, state, params):
        split = {"direction": state.direction, "scale": state.scale}
        _, pull_back = jax.vjp(merge, split)
        (grads,) = pull_back(updates)

        def add_decay(v, g):
            return g + decay * v if is_split(v) else g

        grads["direction"] = tree_map(add_decay, state.direction, grads["direction"])
        steps, inner_state = inner.update(grads, state.inner_state, split)
        split = optax.apply_updates(split, steps)
        updates = tree_map(lambda new, old: new - old, merge(split), params)
        return updates, WeightNormState(**split, inner_state=inner_state)

    return optax.GradientTransformation(init_fn, update_fn)
''',
    imports=("from typing import NamedTuple", "import jax", "import jax.numpy as jnp", "import optax"),
)
NAMES = {"wrapped_optimizer": "inner", "wn_decay": "decay", "wn_eps": "eps"}


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    """The same call of another function; `inner` is converted, and its learning rate injected, on its own."""
    return Converted(Arguments(call, SIGNATURE, inject=False).alias(WEIGHT_NORM.name, NAMES), (WEIGHT_NORM,))


STATE = {"direction": "direction", "scale": "scale", "direction_state": "inner_state", "scale_state": "inner_state"}
OPTIMIZER = LegacyOptimizer("WeightNorm", SIGNATURE, STATE, convert)
