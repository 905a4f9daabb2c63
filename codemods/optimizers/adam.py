"""Adam (Kingma and Ba 2014), with optional weight decay outside the moments (Loshchilov and Hutter
2017).

Legacy: m ← β₁·m + (1−β₁)·g; v ← β₂·v + (1−β₂)·g²; with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ): p ← p −
η·m̂/(√v̂ + ε) − η·λ·p.

optax: `adam`, or `adamw` with the weight decay; the same up to rounding.

Legacy takes the square of a complex gradient, optax the squared modulus. So optimizers of complex
parameters stay.

In bfloat16 legacy rounded β₂ = 0.999 to 1 and never moved; optax trains.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters

SIGNATURE = parameters(
    learning_rate="None", beta1="0.9", beta2="0.999", eps="1e-8", weight_decay="0.0"
)
NAMES = {"beta1": "b1", "beta2": "b2", "eps": "eps"}


def convert(arguments: Arguments) -> Converted:
    arguments.drop_if("weight_decay", 0)
    if not arguments.may_be_alias:
        moments = arguments.link("optax.scale_by_adam", *arguments.take(NAMES))
        return Converted(
            arguments.chain(moments, arguments.decay(), arguments.descent())
        )
    if "weight_decay" in arguments:
        return Converted(arguments.alias("optax.adamw", NAMES))
    return Converted(arguments.alias("optax.adam", NAMES))


RULE = """beta1, beta2 = hyper_params.beta1, hyper_params.beta2
grad_ema = beta1 * state.grad_ema + (1.0 - beta1) * grad
grad_sq_ema = beta2 * state.grad_sq_ema + (1.0 - beta2) * jnp.square(grad)
count = jnp.array(step + 1, param.dtype)
mean, variance = grad_ema / (1 - beta1**count), grad_sq_ema / (1 - beta2**count)
denominator = jnp.sqrt(variance) + hyper_params.eps
new_param = param - hyper_params.learning_rate * mean / denominator
new_param -= hyper_params.learning_rate * hyper_params.weight_decay * param
return new_param, AdamParamState(grad_ema, grad_sq_ema)
"""

OPTIMIZER = LegacyOptimizer(
    "Adam",
    SIGNATURE,
    {"grad_ema": "mu", "grad_sq_ema": "nu"},
    convert,
    module="adam",
    kept_in=("ScaleByAdamState",),
    counts=True,
    adds_decay=True,
    of_reals=True,
    rule=RULE,
)
