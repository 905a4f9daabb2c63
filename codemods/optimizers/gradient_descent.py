"""GradientDescent: a step against the gradient.

Legacy: p ← p − η·g. optax: the same, `sgd`. Bit for bit equal.
"""

from __future__ import annotations

import libcst as cst

from codemods.model import Form
from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters

SIGNATURE = parameters(learning_rate="None")


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    function = "optax.scale_by_learning_rate" if form == "chain" else "optax.sgd"
    return Converted(Arguments(call, SIGNATURE, form, inject).alias(function, {}))


RULE = """return param - hyper_params.learning_rate * grad, state
"""

OPTIMIZER = LegacyOptimizer(
    "GradientDescent", SIGNATURE, {}, convert, module="sgd", rule=RULE
)
