"""GradientDescent: a step against the gradient.

Legacy: p ← p − η·g. optax: the same, `sgd`. Bit for bit equal.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters

SIGNATURE = parameters(learning_rate="None")


def convert(arguments: Arguments) -> Converted:
    is_chain = arguments.form == "chain"
    function = "optax.scale_by_learning_rate" if is_chain else "optax.sgd"
    return Converted(arguments.alias(function, {}))


RULE = """return param - hyper_params.learning_rate * grad, state
"""

OPTIMIZER = LegacyOptimizer(
    "GradientDescent", SIGNATURE, {}, convert, module="sgd", rule=RULE
)
