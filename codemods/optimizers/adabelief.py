"""AdaBelief (Zhuang et al. 2020): Adam whose second moment is that of the surprise in the gradient.

Legacy: m ← β₁·m + (1−β₁)·g; s ← β₂·s + (1−β₂)·(g−m)² + ε; p ← p − η·m̂/(√ŝ + ε) − η·λ·p.
optax: `adabelief` with ε given twice, as `eps` and as `eps_root`; the same up to rounding. Its own default for weight decay
multiplies in another place, so a decay is a link of its own.
"""

from __future__ import annotations

import libcst as cst

from codemods.model import Form
from codemods.optimizers.base import (
    Arguments,
    Converted,
    LegacyOptimizer,
    alias,
    argument,
    chain,
    decay,
    link,
    named,
    parameters,
    rate,
    refuser,
)

SIGNATURE = parameters(learning_rate="None", beta1="0.9", beta2="0.999", eps="1e-16", weight_decay="0.0")
NAMES = {"beta1": ("b1",), "beta2": ("b2",), "eps": ("eps", "eps_root")}
STATIC = ("b1", "b2", "eps", "eps_root")


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    arguments = Arguments(call, SIGNATURE)
    arguments.drop_if("weight_decay", "0", "0.0", "0.")
    if form == "alias" and "weight_decay" not in arguments:
        return Converted(alias(arguments, "optax.adabelief", NAMES, inject, STATIC))
    moments = named(arguments, {"beta1": "b1", "beta2": "b2", "eps": "eps"})
    root = [argument("eps_root", arguments.source("eps"))] if "eps" in arguments else []
    belief = link("optax.scale_by_belief", *moments, *root)
    return Converted(chain(arguments, belief, decay(arguments), rate(arguments, inject)))


OPTIMIZER = LegacyOptimizer(
    "AdaBelief",
    SIGNATURE,
    {"grad_ema": "mu", "grad_sq_ema": "nu"},
    refuser(SIGNATURE, ("weight_decay",)),
    convert,
    __doc__ or "",
)
