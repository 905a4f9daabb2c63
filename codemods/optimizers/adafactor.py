"""Adafactor (Shazeer and Stern 2018): second moments factored into rows and columns, steps relative to the parameters.

Legacy: with ρₜ = 1 − (t+1−offset)^−decay, v ← ρₜ·v + (1−ρₜ)·(g² + ε₁), as row and column means where two dimensions are large;
u = g/√v, divided by max(1, rms(u)/threshold); u ← η·max(rms(p), ε₂)·u; with β₁ an average of u; p ← (1−λ)·p − u.
optax: `adafactor`, the same up to rounding. It fixes ε₂ at 1e-3, so another ε₂ needs the explicit chain.
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
    is_plain,
    link,
    named,
    parameters,
    rate,
)
from codemods.template import expression

SIGNATURE = parameters(
    learning_rate="None",
    factored="True",
    multiply_by_parameter_scale="True",
    beta1="None",
    decay_rate="0.8",
    step_offset="0",
    clipping_threshold="1.0",
    weight_decay_rate="None",
    min_dim_size_to_factor="128",
    epsilon1="1e-30",
    epsilon2="1e-3",
    dtype_momentum="jnp.float32",
)
NAMES = {"beta1": ("momentum",), "step_offset": ("decay_offset",), "epsilon1": ("eps",)}
STATIC = (
    "min_dim_size_to_factor",
    "decay_rate",
    "decay_offset",
    "multiply_by_parameter_scale",
    "clipping_threshold",
    "momentum",
    "dtype_momentum",
    "weight_decay_rate",
    "eps",
    "factored",
)
MOMENTS = {
    "factored": "factored",
    "decay_rate": "decay_rate",
    "step_offset": "step_offset",
    "min_dim_size_to_factor": "min_dim_size_to_factor",
    "epsilon1": "epsilon",
}
OPTIONAL = ("beta1", "weight_decay_rate", "clipping_threshold", "multiply_by_parameter_scale")


def refuse(call: ast.Call) -> Refusal | None:
    """The chain asks some arguments whether they are None, so these must be plain."""
    found = given(call, SIGNATURE)
    if isinstance(found, Refusal):
        return found
    for name in OPTIONAL:
        if name in found and not is_plain(found[name]):
            return Refusal("FO905", f"`{name}` is computed in the call.", "Give the value a name first.")
    return None


def convert(call: cst.Call, form: Form, inject: bool) -> Converted:
    arguments = Arguments(call, SIGNATURE)
    arguments.drop_if("epsilon2", "1e-3", "0.001", "1e-03")
    if form == "alias" and "epsilon2" not in arguments:
        return Converted(alias(arguments, "optax.adafactor", NAMES, inject, STATIC))
    threshold = arguments.source("clipping_threshold") or "1.0"
    scaled = arguments.source("multiply_by_parameter_scale") or "True"
    average = ", debias=False, accumulator_dtype=" + (arguments.source("dtype_momentum") or "'float32'")
    links = [
        link("optax.scale_by_factored_rms", *named(arguments, MOMENTS)),
        _unless_none(threshold, f"optax.clip_by_block_rms({threshold})"),
        rate(arguments, inject, flip_sign="False"),
        _if_true(scaled, f"optax.scale_by_param_block_rms({arguments.source('epsilon2')})"),
        _unless_none(arguments.source("beta1") or "None", f"optax.ema({arguments.source('beta1')}{average})"),
        _unless_none(
            arguments.source("weight_decay_rate") or "None",
            f"optax.add_decayed_weights({arguments.source('weight_decay_rate')})",
        ),
        link("optax.scale", argument(None, "-1")),
    ]
    return Converted(chain(arguments, *links))


def _unless_none(value: str, transformation: str) -> cst.BaseExpression | None:
    if value == "None":
        return None
    if isinstance(cst.parse_expression(value), cst.BaseNumber):
        return expression(transformation)
    return expression(f"{transformation} if {value} is not None else optax.identity()")


def _if_true(value: str, transformation: str) -> cst.BaseExpression | None:
    if value in ("True", "False"):
        return expression(transformation) if value == "True" else None
    return expression(f"{transformation} if {value} else optax.identity()")


OPTIMIZER = LegacyOptimizer(
    "Adafactor",
    SIGNATURE,
    {"v_row": "v_row", "v_col": "v_col", "v": "v", "m": "ema"},
    refuse,
    convert,
    __doc__ or "",
)
