"""Adagrad (Duchi et al. 2011): steps that shrink with the sum of all past squared gradients.

Legacy: G ← G + g²; p ← p − η·g/(√G + ε), with G = 0 at first.

optax: `adagrad` starts G at 0.1 and puts ε under the root, which is another function. So a
transformation in your file keeps the legacy rule.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, helper, parameters

SIGNATURE = parameters(learning_rate="None", eps="1e-8")

SCALE_BY_SUM_OF_SQUARES = helper('''class ScaleBySumOfSquaresState(NamedTuple):
    """The sum of the squares of all past gradients, for each parameter."""

    sum_of_squares: optax.Updates


def scale_by_sum_of_squares(eps=1e-8):
    """Divide by the root of the sum of squared gradients, plus eps.

    This is Adagrad (Duchi et al. 2011). Unlike in `optax.adagrad`, the sum starts at
    zero, and eps is outside of the root.
    """

    def init_fn(params):
        return ScaleBySumOfSquaresState(jax.tree_util.tree_map(jnp.zeros_like, params))

    def update_fn(updates, state, params=None):
        del params
        tree_map = jax.tree_util.tree_map
        sums = tree_map(lambda s, g: s + jnp.square(g), state.sum_of_squares, updates)
        updates = tree_map(lambda s, g: g / (jnp.sqrt(s) + eps), sums, updates)
        return updates, ScaleBySumOfSquaresState(sums)

    return optax.GradientTransformation(init_fn, update_fn)
''')


def convert(arguments: Arguments) -> Converted:
    rule = arguments.link(SCALE_BY_SUM_OF_SQUARES.name, *arguments.take({"eps": "eps"}))
    return Converted(
        arguments.chain(rule, arguments.descent()), (SCALE_BY_SUM_OF_SQUARES,)
    )


RULE = """sum_of_squares = state.G + jnp.square(grad)
denominator = jnp.sqrt(sum_of_squares) + hyper_params.eps
update = hyper_params.learning_rate * grad / denominator
return param - update, AdagradParamState(sum_of_squares)
"""

OPTIMIZER = LegacyOptimizer(
    "Adagrad",
    SIGNATURE,
    {"G": "sum_of_squares"},
    convert,
    module="adagrad",
    kept_in=("ScaleByRssState", "ScaleBySumOfSquaresState"),
    rule=RULE,
)
