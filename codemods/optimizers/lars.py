"""LARS (You et al. 2017): momentum whose rate is scaled for each leaf by the norms of parameters
and gradient.

Legacy: r = τ·|p|/(|g| + λ·|p| + ε), or 1 if |g| or |p| is zero; m ← β·m + η·r·(g + λ·p); p ← p − m
(or the look-ahead).

optax: `lars` without weight decay, the same up to rounding. With weight decay `lars` takes the norm
of g + λ·p, which is another function, so a transformation in your file keeps the legacy ratio. The
trace of optax holds the negated momentum.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, helper, parameters

SIGNATURE = parameters(
    learning_rate="None",
    beta="0.9",
    weight_decay="0",
    trust_coefficient="0.001",
    eps="0",
    nesterov="False",
)
NAMES = {"beta": "momentum"}
RATIO = {
    "weight_decay": "weight_decay",
    "trust_coefficient": "trust_coefficient",
    "eps": "eps",
}
TRACE = {"beta": "decay", "nesterov": "nesterov"}

SCALE_BY_DECAYED_TRUST_RATIO = helper(
    '''def scale_by_decayed_trust_ratio(weight_decay, trust_coefficient=0.001, eps=0.0):
    """Add decayed weights and scale by trust ratio (LARS, You et al. 2017).

    Unlike in `optax.lars`, the ratio divides by the sum of the norms of
    gradient and decayed weights, not by the norm of their sum.
    """

    def scale(grad, param):
        grad_norm, param_norm = jnp.linalg.norm(grad), jnp.linalg.norm(param)
        decayed_norm = grad_norm + weight_decay * param_norm + eps
        ratio = trust_coefficient * param_norm / decayed_norm
        ratio = jnp.where((grad_norm == 0.0) | (param_norm == 0.0), 1.0, ratio)
        return ratio * (grad + weight_decay * param)

    return optax.stateless_with_tree_map(scale)
'''
)


def convert(arguments: Arguments) -> Converted:
    arguments.drop_if("weight_decay", 0)
    decayed = "weight_decay" in arguments
    # with weight decay, the ratio of `optax.lars` is another function
    if arguments.may_be_alias and not decayed:
        return Converted(arguments.alias("optax.lars", NAMES))
    if decayed:
        ratio = arguments.link(
            SCALE_BY_DECAYED_TRUST_RATIO.name, *arguments.take(RATIO)
        )
    else:
        ratio = arguments.link(
            "optax.scale_by_trust_ratio",
            *arguments.take(RATIO, trust_coefficient="0.001"),
        )
    trace = arguments.link("optax.trace", *arguments.take(TRACE, decay="0.9"))
    supports = (SCALE_BY_DECAYED_TRUST_RATIO,) if decayed else ()
    return Converted(arguments.chain(ratio, arguments.descent(), trace), supports)


RULE = """param_norm, grad_norm = jnp.linalg.norm(param), jnp.linalg.norm(grad)
decayed_norm = grad_norm + hyper_params.weight_decay * param_norm
decayed_norm += hyper_params.eps
ratio = hyper_params.trust_coefficient * param_norm / decayed_norm
ratio = jnp.where((grad_norm == 0.0) | (param_norm == 0.0), 1.0, ratio)
if hyper_params.weight_decay != 0:
    grad = grad + hyper_params.weight_decay * param
scaled = hyper_params.learning_rate * ratio * grad
momentum = hyper_params.beta * state.momentum + scaled
update = momentum
if hyper_params.nesterov:
    update = scaled + hyper_params.beta * momentum
return param - update, LARSParamState(momentum)
"""

OPTIMIZER = LegacyOptimizer(
    "LARS",
    SIGNATURE,
    {"momentum": "trace"},
    convert,
    module="lars",
    rule=RULE,
    samples={"trust_coefficient": 0.0023},
)
