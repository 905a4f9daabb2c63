"""Scripts that repeat a case by themselves."""

from __future__ import annotations

from textwrap import indent

from codemods.model import EmittedOptimizer
from codemods.vocabulary import words
from optim2optax.parity.optimizer.coverage import (
    PERIOD,
    RATE,
    RATE_DECAY,
    horizon,
    probe_for,
    sets_rate,
    sizes,
)
from optim2optax.parity.optimizer.sampling import Sample
from optim2optax.parity.optimizer.texts import SCHEDULE, sampled_texts

MODULES = words(
    "collections dataclasses flax.core flax.struct flax.traverse_util functools typing"
)
"""The modules that functions of a program may need, beside those that every script imports."""

TEMPLATE = """\
# {before}
# {after}
import math
{imports}
import jax
import jax.numpy as jnp
import numpy as np
import optax

from optim2optax.legacy import legacy_optim
from optim2optax.parity.optimizer.probe import probe_params
from optim2optax.parity.optimizer.probed import compare_probed
{values}{old_helpers}{helpers}
with legacy_optim() as optim:
    old = {legacy}
new = {optax}

print(compare_probed(old, new, {steps}, {seed}, probe_params({probe}){overrides}{further}))
"""


def reproduction(emitted: EmittedOptimizer, steps: int, seed: int) -> str:
    """A script that compares an emitted optimizer with the one it replaces.

    It needs the extra `parity` alone.
    """
    sample = sampled_texts(emitted)
    values = _assignments(sample)
    if emitted.schedule:
        rates = (
            f"jnp.asarray([{RATE} * {RATE_DECAY}**step for step in range({PERIOD})])"
        )
        values += f"{SCHEDULE} = lambda count: {rates}[count % {PERIOD}]\n"
    probe = probe_for(emitted, seed).items()
    further = {"horizon": horizon(emitted, steps), "sizes": sizes(emitted)}
    everything = "\n".join(
        (*sample.legacy_supports, *sample.supports, sample.legacy, sample.optax)
    )
    overrides = f", overrides=lambda step: {RATE} * {RATE_DECAY} ** (step % {PERIOD})"
    return TEMPLATE.format(
        before=" ".join(emitted.before.split()),
        after=" ".join(emitted.after.split()),
        values=f"\n{values}" if values else "",
        imports="".join(
            f"import {name}\n" for name in MODULES if f"{name}." in everything
        ),
        old_helpers=_old_helpers(sample),
        helpers="".join(f"\n{source}\n" for source in sample.supports),
        legacy="make_old(optim)" if sample.legacy_supports else sample.legacy,
        optax=sample.optax,
        steps=steps,
        seed=seed,
        probe=", ".join(f"{name}={value!r}" for name, value in probe),
        further="".join(
            f", {name}={value}" for name, value in further.items() if value
        ),
        overrides=overrides if sets_rate(emitted) else "",
    )


def _assignments(sample: Sample) -> str:
    """The placeholders with their values, and the source texts that they stand for in comments."""
    values = zip(sample.values, sample.named.items(), strict=True)
    return "".join(f"{name} = {text}  # {source}\n" for name, (source, text) in values)


def _old_helpers(sample: Sample) -> str:
    """A function around those that the old side reaches, as the new side may use the same names."""
    # Where the old side is an expression alone, it needs no function of its own.
    if not sample.legacy_supports:
        return ""
    body = "\n".join((*sample.legacy_supports, f"return {sample.legacy}"))
    return f"\n\ndef make_old(optim):\n{indent(body, '    ')}\n"
