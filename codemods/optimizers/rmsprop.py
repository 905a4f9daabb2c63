"""RMSProp (Tieleman and Hinton 2012): steps divided by a running root mean square of the
gradients.

Legacy: v ← β₂·v + (1−β₂)·g²; p ← p − η·g/(√v + ε); centered: √(v − (average of g)²) instead of √v.

optax: `rmsprop` with `eps_in_sqrt=False`, the same up to rounding. Its default puts ε under the
root, which moves a weight with small gradients many times less.

Legacy takes the square of a complex gradient, optax the squared modulus. So optimizers of complex
parameters stay.

In bfloat16 both train and round differently: they come nearer to each other than either to
float32.
"""

from __future__ import annotations

import libcst as cst

from codemods.cst.template import expression
from codemods.optimizers.arguments import Arguments, constant
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters

SIGNATURE = parameters(learning_rate="None", beta2="0.9", eps="1e-8", centered="False")
NAMES = {"beta2": "decay", "eps": "eps"}


def convert(arguments: Arguments) -> Converted:
    arguments.drop_if("centered", False)
    if arguments.may_be_alias:
        return Converted(arguments.alias("optax.rmsprop", NAMES, eps_in_sqrt="False"))
    rule = arguments.link(
        _scale(arguments.value("centered")), *arguments.take(NAMES, eps_in_sqrt="False")
    )
    return Converted(arguments.chain(rule, arguments.descent()))


def _scale(centered: cst.BaseExpression) -> cst.BaseExpression:
    known = constant(centered)
    # RMSProp(centered=centered)
    if known is ...:
        return expression(
            "(optax.scale_by_stddev if {centered} else optax.scale_by_rms)",
            centered=centered,
        )
    return expression("optax.scale_by_stddev" if known else "optax.scale_by_rms")


RULE = """beta2 = hyper_params.beta2
v, mg = beta2 * state.v + (1.0 - beta2) * jnp.square(grad), state.mg
variance = v
if hyper_params.centered:
    mg = beta2 * mg + (1.0 - beta2) * grad
    variance = v - jnp.square(mg)
denominator = jnp.sqrt(variance) + hyper_params.eps
update = hyper_params.learning_rate * grad / denominator
return param - update, RMSPropParamState(v, mg)
"""
INITIAL = "jnp.zeros_like(param), jnp.zeros_like(param) if self.hyper_params.centered else None"

OPTIMIZER = LegacyOptimizer(
    "RMSProp",
    SIGNATURE,
    {"v": "nu", "mg": "mu"},
    convert,
    module="rmsprop",
    kept_in=(
        "ScaleByRmsState",
        "ScaleByRmsWithCountState",
        "ScaleByRStdDevState",
        "ScaleByRStdDevWithCountState",
    ),
    of_reals=True,
    rule=RULE,
    initial=INITIAL,
)
