"""GradientDescent: a step against the gradient.

Legacy: p ← p − η·g. optax: the same, `sgd`. Bit for bit equal.
"""

from __future__ import annotations

import libcst as cst

from codemods.model import Form
from codemods.optimizers.base import Arguments, Converted, LegacyOptimizer, alias, chain, parameters, rate, refuser

SIGNATURE = parameters(learning_rate="None")


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    arguments = Arguments(call, SIGNATURE)
    if form == "chain":
        return Converted(chain(arguments, rate(arguments, inject)))
    return Converted(alias(arguments, "optax.sgd", {}, inject))


OPTIMIZER = LegacyOptimizer("GradientDescent", SIGNATURE, {}, refuser(SIGNATURE), convert, __doc__ or "")
