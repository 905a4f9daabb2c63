"""Yogi (Zaheer et al. 2018): Adam whose second moment moves by the sign of what is new in it.

Legacy: `m = b1 m + (1 - b1) g`, `v = v - (1 - b2) sign(v - g^2) g^2`, both from `1e-6` on,
`p = p - lr m^ / (sqrt(v^) + eps)`, where `m^ = m / (1 - b1^t)` and `v^ = v / (1 - b2^t)`.

optax: the same rule, equal up to rounding.
"""

from __future__ import annotations

from codemods.optimizers.arguments import Arguments
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters

SIGNATURE = parameters(learning_rate="None", beta1="0.9", beta2="0.999", eps="1e-3")
NAMES = {"beta1": "b1", "beta2": "b2", "eps": "eps"}


def convert(arguments: Arguments) -> Converted:
    if not arguments.may_be_alias:
        moments = arguments.link("optax.scale_by_yogi", *arguments.take(NAMES))
        return Converted(arguments.chain(moments, arguments.descent()))
    return Converted(arguments.alias("optax.yogi", NAMES))


OPTIMIZER = LegacyOptimizer(
    "Yogi",
    SIGNATURE,
    {"grad_ema": "mu", "grad_sq_ema": "nu"},
    convert,
    module="yogi",
    kept_in=("ScaleByAdamState",),
    counts=True,
)
