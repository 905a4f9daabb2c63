"""Momentum: gradient descent with a trace of past gradients (Polyak 1964), and optionally
Nesterov's look-ahead (1983).

Legacy: g ← g + λ·p; m ← β·m + g; p ← p − η·m, or p − η·(g + β·m) with Nesterov.

optax: `sgd(η, momentum=β)`, after `add_decayed_weights(λ)`, which adds λ·p to the gradient before
the trace, as legacy did.

Bit for bit equal.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters

SIGNATURE = parameters(
    learning_rate="None", beta="0.9", weight_decay="0", nesterov="False"
)
NAMES = {"beta": "momentum"}


def convert(arguments: Arguments) -> Converted:
    arguments.drop_if("weight_decay", 0)
    decay = arguments.decay()
    if not arguments.may_be_alias:
        trace = arguments.link(
            "optax.trace",
            *arguments.take({"beta": "decay", "nesterov": "nesterov"}, decay="0.9"),
        )
        return Converted(arguments.chain(decay, trace, arguments.descent()))
    # `optax.sgd` has no weight decay
    if decay is None:
        return Converted(arguments.alias("optax.sgd", NAMES, momentum="0.9"))
    rest = arguments.take_all(NAMES, momentum="0.9")
    return Converted(arguments.chain(decay, arguments.link("optax.sgd", *rest)))


RULE = """if hyper_params.weight_decay != 0:
    grad = grad + hyper_params.weight_decay * param
momentum = hyper_params.beta * state.momentum + grad
update = momentum
if hyper_params.nesterov:
    update = grad + hyper_params.beta * momentum
return param - hyper_params.learning_rate * update, MomentumParamState(momentum)
"""

OPTIMIZER = LegacyOptimizer(
    "Momentum",
    SIGNATURE,
    {"momentum": "trace"},
    convert,
    module="momentum",
    kept_in=("TraceState",),
    adds_decay=True,
    rule=RULE,
)
