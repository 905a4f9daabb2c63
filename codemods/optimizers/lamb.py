"""LAMB (You et al. 2019): Adam's direction, scaled for each leaf by the ratio of the norms of
parameters and update.

Legacy: u = m̂/(√v̂ + ε) + λ·p; p ← p − η·r·u, with r = |p|/|u| if |p| + |u| > 0, else 1.

optax: `lamb` takes r = 1 where either norm is zero, so it moves leaves that are all zero, and
legacy does not. A transformation in your file keeps the legacy ratio.

Legacy takes the square of a complex gradient, optax the squared modulus. So optimizers of complex
parameters stay.

In bfloat16 legacy rounded β₂ = 0.999 to 1 and gave NaN; optax trains.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, helper, parameters

SIGNATURE = parameters(
    learning_rate="None", beta1="0.9", beta2="0.999", weight_decay="0", eps="1e-6"
)
NAMES = {"beta1": "b1", "beta2": "b2", "eps": "eps"}

SCALE_BY_NORM_RATIO = helper('''def scale_by_norm_ratio():
    """Scale updates to the norm of their parameters (LAMB, You et al. 2019).

    Unlike in `optax.lamb`, a leaf of zeros has the ratio zero: it stays as it is.
    """

    def scale(update, param):
        param_norm, update_norm = jnp.linalg.norm(param), jnp.linalg.norm(update)
        ratio = param_norm / update_norm
        return update * jnp.where(param_norm + update_norm > 0.0, ratio, 1.0)

    return optax.stateless_with_tree_map(scale)
''')


def convert(arguments: Arguments) -> Converted:
    arguments.drop_if("weight_decay", 0)
    moments = arguments.link("optax.scale_by_adam", *arguments.take(NAMES, eps="1e-6"))
    # `optax.lamb` moves leaves of zeros, so it is no alias
    ratio = arguments.link(SCALE_BY_NORM_RATIO.name)
    return Converted(
        arguments.chain(moments, arguments.decay(), ratio, arguments.descent()),
        (SCALE_BY_NORM_RATIO,),
    )


RULE = """beta1, beta2 = hyper_params.beta1, hyper_params.beta2
grad_ema = beta1 * state.grad_ema + (1.0 - beta1) * grad
grad_sq_ema = beta2 * state.grad_sq_ema + (1.0 - beta2) * jnp.square(grad)
count = jnp.array(step + 1, param.dtype)
mean, variance = grad_ema / (1 - beta1**count), grad_sq_ema / (1 - beta2**count)
update = mean / (jnp.sqrt(variance) + hyper_params.eps)
if hyper_params.weight_decay != 0:
    update += hyper_params.weight_decay * param
param_norm, update_norm = jnp.linalg.norm(param), jnp.linalg.norm(update)
ratio = jnp.where(param_norm + update_norm > 0.0, param_norm / update_norm, 1.0)
new_param = param - ratio * hyper_params.learning_rate * update
return new_param, LAMBParamState(grad_ema, grad_sq_ema)
"""

OPTIMIZER = LegacyOptimizer(
    "LAMB",
    SIGNATURE,
    {"grad_ema": "mu", "grad_sq_ema": "nu"},
    convert,
    module="lamb",
    kept_in=("ScaleByAdamState",),
    counts=True,
    adds_decay=True,
    of_reals=True,
    rule=RULE,
    # the trust ratio divides by the norm of an update that is 0
    fault="divides by zero on a leaf that never gets a gradient",
)
