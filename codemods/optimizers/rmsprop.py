"""RMSProp (Tieleman and Hinton 2012): steps divided by a running root mean square of the gradients.

Legacy: v ← β₂·v + (1−β₂)·g²; p ← p − η·g/(√v + ε); centered: √(v − (average of g)²) instead of √v.
optax: `rmsprop` with `eps_in_sqrt=False`, the same up to rounding. Its default puts ε under the root, which moves a weight
with small gradients many times less.
"""

from __future__ import annotations

import ast

import libcst as cst

from codemods.model import Form, Refusal
from codemods.optimizers.base import (
    Arguments,
    Converted,
    LegacyOptimizer,
    alias,
    argument,
    chain,
    given,
    link,
    named,
    parameters,
    rate,
)

SIGNATURE = parameters(learning_rate="None", beta2="0.9", eps="1e-8", centered="False")
NAMES = {"beta2": ("decay",)}
STATIC = ("decay", "eps", "initial_scale")


def refuse(call: ast.Call) -> Refusal | None:
    found = given(call, SIGNATURE)
    return found if isinstance(found, Refusal) else None


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    arguments = Arguments(call, SIGNATURE)
    arguments.drop_if("centered", "False")
    if form == "alias" or arguments.source("centered") not in ("", "True"):
        return Converted(alias(arguments, "optax.rmsprop", NAMES, inject, STATIC, {"eps_in_sqrt": "False"}))
    function = "optax.scale_by_stddev" if "centered" in arguments else "optax.scale_by_rms"
    moments = named(arguments, {"beta2": "decay", "eps": "eps"})
    rule = link(function, *moments, argument("eps_in_sqrt", "False"))
    return Converted(chain(arguments, rule, rate(arguments, inject)))


OPTIMIZER = LegacyOptimizer("RMSProp", SIGNATURE, {"v": "nu", "mg": "mu"}, refuse, convert, __doc__ or "")
