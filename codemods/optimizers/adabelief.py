"""AdaBelief (Zhuang et al. 2020): Adam whose second moment is that of the surprise in the
gradient.

Legacy: m ← β₁·m + (1−β₁)·g; s ← β₂·s + (1−β₂)·(g−m)² + ε; p ← p − η·m̂/(√ŝ + ε) − η·λ·p.

optax: `adabelief` with ε as `eps` and as `eps_root`, both 1e-16 by default as in legacy; the same
up to rounding. It has no weight decay, so the decay is a separate link.

Legacy takes the square of a complex gradient, optax the squared modulus. So optimizers of complex
parameters stay.

In bfloat16 legacy rounded β₂ = 0.999 to 1 and never moved; optax trains.
"""

from __future__ import annotations

from codemods.cst.spacing import source
from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters, refuser

SIGNATURE = parameters(
    learning_rate="None", beta1="0.9", beta2="0.999", eps="1e-16", weight_decay="0.0"
)
NAMES = {"beta1": "b1", "beta2": "b2", "eps": "eps"}


def convert(arguments: Arguments) -> Converted:
    arguments.drop_if("weight_decay", 0)
    # AdaBelief(eps=e) has ε in both places
    root = {"eps_root": source(arguments.value("eps"))} if "eps" in arguments else {}
    # `optax.adabelief` has no weight decay
    if arguments.may_be_alias and "weight_decay" not in arguments:
        return Converted(arguments.alias("optax.adabelief", NAMES, **root))
    belief = arguments.link("optax.scale_by_belief", *arguments.take(NAMES, **root))
    return Converted(arguments.chain(belief, arguments.decay(), arguments.descent()))


STATE = {"grad_ema": "mu", "grad_sq_ema": "nu"}
RULE = """beta1, beta2 = hyper_params.beta1, hyper_params.beta2
grad_ema = beta1 * state.grad_ema + (1.0 - beta1) * grad
surprise = jnp.square(grad - grad_ema)
grad_sq_ema = beta2 * state.grad_sq_ema + (1.0 - beta2) * surprise
grad_sq_ema += hyper_params.eps
count = jnp.array(step + 1, param.dtype)
mean, variance = grad_ema / (1 - beta1**count), grad_sq_ema / (1 - beta2**count)
denominator = jnp.sqrt(variance) + hyper_params.eps
new_param = param - hyper_params.learning_rate * mean / denominator
new_param -= hyper_params.learning_rate * hyper_params.weight_decay * param
return new_param, AdaBeliefParamState(grad_ema, grad_sq_ema)
"""

OPTIMIZER = LegacyOptimizer(
    "AdaBelief",
    SIGNATURE,
    STATE,
    convert,
    module="adabelief",
    kept_in=("ScaleByBeliefState",),
    counts=True,
    adds_decay=True,
    of_reals=True,
    refuses=refuser(SIGNATURE, plain=("eps",)),
    rule=RULE,
)
