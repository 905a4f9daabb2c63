"""WeightNorm (Salimans and Kingma 2016): an optimizer that works on directions and scales of the
weights.

Legacy: w = s·v/√(Σv² + ε), the sum over all axes but the last; gradients are pulled back to (v, s),
`wn_decay`·v is added to that of v, the inner optimizer steps both, and w is computed again. Vectors
stay as they are. optax has nothing like it, so a transformation in your file does the same around
any inner transformation.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, helper, parameters

SIGNATURE = parameters(wrapped_optimizer=None, wn_decay="0", wn_eps="1e-8")

WEIGHT_NORM = helper('''class WeightNormState(NamedTuple):
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
''')
INTERFACE = '''class WeightNorm(OptimizerDef):
    """Step direction and scale of each weight (Salimans and Kingma 2016).

    A weight is scale * direction / norm(direction), with the norm over all axes
    but the last.
    Vectors are stepped as they are. `wn_decay` pulls directions towards zero.
    """

    def __init__(self, wrapped_optimizer, wn_decay=0, wn_eps=1e-8):
        super().__init__(
            WeightNormHyperParams(wrapped_optimizer.hyper_params, wn_decay, wn_eps)
        )
        self.wrapped_optimizer = wrapped_optimizer

    def update_hyper_params(self, **overrides):
        own = {
            name: overrides.pop(name)
            for name in ("wn_decay", "wn_eps")
            if name in overrides
        }
        inner = self.wrapped_optimizer.update_hyper_params(**overrides)
        return self.hyper_params.replace(inner=inner, **own)

    def init_state(self, params):
        eps = self.hyper_params.wn_eps
        params, treedef = jax.tree_util.tree_flatten(params)
        scale = [
            jnp.sqrt(self._norm(w, eps)) if self._is_split(w) else () for w in params
        ]
        direction = [w / s if self._is_split(w) else w for w, s in zip(params, scale)]
        split = {
            "direction": treedef.unflatten(direction),
            "scale": treedef.unflatten(scale),
        }
        return self._joined(treedef, self.wrapped_optimizer.init_state(split), split)

    def apply_gradient(self, hyper_params, params, state, grads):
        treedef = jax.tree_util.tree_structure(params)
        kept = treedef.flatten_up_to(state.param_states)
        split = {
            name: treedef.unflatten([getattr(one, name) for one in kept])
            for name in ("direction", "scale")
        }
        states = {
            name: treedef.unflatten([getattr(one, f"{name}_state") for one in kept])
            for name in split
        }

        def merge(split):
            def merge_leaf(v, s):
                return (
                    v * (s * jax.lax.rsqrt(self._norm(v, hyper_params.wn_eps)))
                    if self._is_split(v)
                    else v
                )

            return jax.tree_util.tree_map(
                merge_leaf, split["direction"], split["scale"]
            )

        def add_decay(v, g):
            return g + hyper_params.wn_decay * v if self._is_split(v) else g

        _, pull_back = jax.vjp(merge, split)
        (slopes,) = pull_back(grads)
        slopes["direction"] = jax.tree_util.tree_map(
            add_decay, split["direction"], slopes["direction"]
        )
        inner = state.replace(param_states=states)
        split, inner = self.wrapped_optimizer.apply_gradient(
            hyper_params.inner, split, inner, slopes
        )
        return merge(split), self._joined(treedef, inner, split)

    @staticmethod
    def _is_split(leaf):
        return leaf.size > leaf.shape[-1]

    @staticmethod
    def _norm(leaf, eps):
        return jnp.square(leaf).sum(tuple(range(leaf.ndim - 1)), keepdims=True) + eps

    @staticmethod
    def _joined(treedef, inner, split):
        states = inner.param_states
        parts = states["direction"], states["scale"], split["direction"], split["scale"]
        kept = [
            WeightNormParamState(*leaf)
            for leaf in zip(*map(treedef.flatten_up_to, parts))
        ]
        return inner.replace(param_states=treedef.unflatten(kept))
'''
NAMES = {"wrapped_optimizer": "inner", "wn_decay": "decay", "wn_eps": "eps"}


def convert(arguments: Arguments) -> Converted:
    """The same call of another function; `inner` is converted on its own."""
    return Converted(arguments.alias(WEIGHT_NORM.name, NAMES), (WEIGHT_NORM,))


STATE = {
    "direction_state": "inner_state",
    "scale_state": "inner_state",
    "direction": "direction",
    "scale": "scale",
}
OPTIMIZER = LegacyOptimizer(
    "WeightNorm",
    SIGNATURE,
    STATE,
    convert,
    module="weight_norm",
    is_composite=True,
    interface=INTERFACE,
    hyper_fields={"wrapped_optimizer": "inner"},
    samples={"wn_decay": 0.011, "wn_eps": 3e-6},
    takes_scalars=False,
)
