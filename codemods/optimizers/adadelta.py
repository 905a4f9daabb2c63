"""Adadelta (Zeiler 2012): steps in the units of the parameters.

Legacy: s ← ρ·s + (1−ρ)·g²; δ = √(a + ε)/√(s + ε)·g; a ← ρ·a + (1−ρ)·δ²; p ← p − η·δ − η·λ·p.

optax: `adadelta`, the same up to rounding. Its own weight decay comes before the rule, so the decay
is a separate link.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters

SIGNATURE = parameters(learning_rate="None", rho="0.9", eps="1e-6", weight_decay="0.0")
NAMES = {"rho": "rho", "eps": "eps"}


def convert(arguments: Arguments) -> Converted:
    arguments.drop_if("weight_decay", 0)
    # the weight decay of `optax.adadelta` is ahead of the rule, and legacy's behind it
    if arguments.may_be_alias and "weight_decay" not in arguments:
        return Converted(arguments.alias("optax.adadelta", NAMES))
    rule = arguments.link("optax.scale_by_adadelta", *arguments.take(NAMES))
    return Converted(arguments.chain(rule, arguments.decay(), arguments.descent()))


RULE = """rho, eps = hyper_params.rho, hyper_params.eps
sq_avg = rho * state.sq_avg + jnp.square(grad) * (1 - rho)
delta = jnp.sqrt(state.acc_delta + eps) / jnp.sqrt(sq_avg + eps) * grad
new_param = param - hyper_params.learning_rate * delta
new_param -= hyper_params.learning_rate * hyper_params.weight_decay * param
acc_delta = rho * state.acc_delta + jnp.square(delta) * (1 - rho)
return new_param, AdadeltaParamState(sq_avg, acc_delta)
"""

OPTIMIZER = LegacyOptimizer(
    "Adadelta",
    SIGNATURE,
    {"sq_avg": "e_g", "acc_delta": "e_x"},
    convert,
    module="adadelta",
    kept_in=("ScaleByAdaDeltaState",),
    adds_decay=True,
    rule=RULE,
    samples={"rho": 0.93},
)
