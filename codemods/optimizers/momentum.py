"""Momentum: gradient descent with a trace of past gradients (Polyak 1964), and optionally Nesterov's look-ahead.

Legacy: g ← g + λ·p; m ← β·m + g; p ← p − η·m, or p − η·(g + β·m) with Nesterov.
optax: `sgd(η, momentum=β)`, after `add_decayed_weights(λ)`, which adds λ·p to the gradient before the trace as legacy did.
Bit for bit equal.
"""

from __future__ import annotations

import libcst as cst

from codemods.model import Form
from codemods.optimizers.base import (
    RATE,
    UNSET_RATE,
    Arguments,
    Converted,
    LegacyOptimizer,
    alias,
    argument,
    chain,
    decay,
    injected,
    link,
    named,
    parameters,
    rate,
    refuser,
)

SIGNATURE = parameters(learning_rate="None", beta="0.9", weight_decay="0", nesterov="False")
NAMES = {"beta": ("momentum",)}
STATIC = ("momentum",)


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    arguments = Arguments(call, SIGNATURE)
    arguments.drop_if("weight_decay", "0", "0.0", "0.")
    if form == "chain":
        trace = link("optax.trace", *named(arguments, {"beta": "decay", "nesterov": "nesterov"}, decay="0.9"))
        return Converted(chain(arguments, decay(arguments), trace, rate(arguments, inject)))
    if "weight_decay" not in arguments:
        explicit = {} if "beta" in arguments else {"momentum": "0.9"}
        return Converted(alias(arguments, "optax.sgd", NAMES, inject, STATIC, explicit))
    written = named(arguments, {"beta": "momentum", "nesterov": "nesterov"}, momentum="0.9")
    if RATE in arguments:
        positional = arguments.by_name[RATE].keyword is None and not inject
        first = arguments.moved(RATE, None if positional else RATE)
    else:
        first = argument(RATE, UNSET_RATE)
    descent = link(injected("optax.sgd", STATIC) if inject else "optax.sgd", first, *written)
    return Converted(chain(arguments, decay(arguments), descent))


OPTIMIZER = LegacyOptimizer(
    "Momentum", SIGNATURE, {"momentum": "trace"}, refuser(SIGNATURE, ("weight_decay",)), convert, __doc__ or ""
)
