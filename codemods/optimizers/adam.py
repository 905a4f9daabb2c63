"""Adam (Kingma and Ba 2014), with weight decay outside of the moments (Loshchilov and Hutter 2017) if it is asked for.

Legacy: m ← β₁·m + (1−β₁)·g; v ← β₂·v + (1−β₂)·g²; with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ): p ← p − η·m̂/(√v̂ + ε) − η·λ·p.
optax: `adam`, or `adamw` with the weight decay; the same up to rounding.
"""

from __future__ import annotations

import libcst as cst

from codemods.model import Form
from codemods.optimizers.base import (
    Arguments,
    Converted,
    LegacyOptimizer,
    alias,
    chain,
    decay,
    link,
    named,
    parameters,
    rate,
    refuser,
)

SIGNATURE = parameters(learning_rate="None", beta1="0.9", beta2="0.999", eps="1e-8", weight_decay="0.0")
NAMES = {"beta1": ("b1",), "beta2": ("b2",)}
MOMENTS = {"beta1": "b1", "beta2": "b2", "eps": "eps"}
STATIC = ("b1", "b2", "eps", "eps_root")


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    arguments = Arguments(call, SIGNATURE)
    arguments.drop_if("weight_decay", "0", "0.0", "0.")
    if form == "chain":
        moments = link("optax.scale_by_adam", *named(arguments, MOMENTS))
        return Converted(chain(arguments, moments, decay(arguments), rate(arguments, inject)))
    if "weight_decay" in arguments:
        return Converted(alias(arguments, "optax.adamw", NAMES, inject, (*STATIC, "weight_decay")))
    return Converted(alias(arguments, "optax.adam", NAMES, inject, STATIC))


OPTIMIZER = LegacyOptimizer(
    "Adam",
    SIGNATURE,
    {"grad_ema": "mu", "grad_sq_ema": "nu"},
    refuser(SIGNATURE, ("weight_decay",)),
    convert,
    __doc__ or "",
)
