"""Scripts that repeat a case by themselves."""

from __future__ import annotations

from codemods.model import EmittedOptimizer
from optim2optax.parity.emitted import RATE, RATE_DECAY, SCHEDULE, sampled_texts, sets_rate

TEMPLATE = """\
# {before}
# {after}
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax

from optim2optax.parity.compare import compare_transformations
from optim2optax.parity.legacy import legacy_optim
{values}{helpers}
with legacy_optim() as optim:
    old = {legacy}
new = {optax}

print(compare_transformations(old, new, steps={steps}, seed={seed}{overrides}))
"""


def reproduction(emitted: EmittedOptimizer, steps: int, seed: int) -> str:
    """A script that compares an emitted optimizer with the one it replaces; it needs the extra `parity` alone."""
    sample = sampled_texts(emitted)
    values = "".join(
        f"{name} = {text}  # {source}\n"
        for (source, text), name in zip(sample.named.items(), sample.values, strict=True)
    )
    if emitted.schedule:
        rates = f"jnp.asarray([{RATE} * {RATE_DECAY}**step for step in range({steps})])"
        values += f"{SCHEDULE} = lambda count: {rates}[count]\n"
    return TEMPLATE.format(
        before=" ".join(emitted.before.split()),
        after=" ".join(emitted.after.split()),
        values=f"\n{values}" if values else "",
        helpers="".join(f"\n{source}\n" for source in emitted.supports),
        legacy=sample.legacy,
        optax=sample.optax,
        steps=steps,
        seed=seed,
        overrides=f", overrides=lambda step: {RATE} * {RATE_DECAY}**step" if sets_rate(emitted) else "",
    )
