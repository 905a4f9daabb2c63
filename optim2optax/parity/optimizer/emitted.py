"""Whether an optimizer that `rewrite` emits is the one that it replaces.

Both source texts are evaluated, and what they give is compared.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from codemods.model import EmittedOptimizer
from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.optimizer.coverage import (
    horizon,
    probe_for,
    rate,
    sets_rate,
    sizes,
)
from optim2optax.parity.optimizer.evaluating import UnevaluableError, evaluate
from optim2optax.parity.optimizer.probe import probe_params
from optim2optax.parity.optimizer.probed import compare_probed
from optim2optax.parity.optimizer.texts import Counterpart
from optim2optax.parity.optimizer.variants import variants


def compare_emitted(
    emitted: EmittedOptimizer, steps: int = 120, seed: int = 0
) -> Comparison:
    """Evaluate an optimizer's old and new source text, and compare the two.

    Names of the program get sampled values. Where the learning rate is set at each step, both
    sides get one that changes in every step.

    Raises:
        UnevaluableError: if one of the texts cannot be evaluated outside of its program.
    """
    comparison, _ = compare_variants(emitted, steps, seed)
    return comparison


def compare_variants(
    emitted: EmittedOptimizer, steps: int = 120, seed: int = 0
) -> tuple[Comparison, EmittedOptimizer]:
    """Compare as `compare_emitted` does, for each choice that the program may make.

    Returns:
        The comparison that departs most, and the variant that it is of.
    """
    if isinstance(emitted, Counterpart) and emitted.reason:
        raise UnevaluableError(emitted.reason)
    if not emitted.optax_expression:
        raise UnevaluableError("there is no new expression")
    found: list[tuple[Comparison, EmittedOptimizer]] = []
    for variant in variants(emitted):
        # Without its place, the same text elsewhere is the same key of the cache.
        text_alone = replace(variant, name="", line=0, before="")
        comparison, compared = _compared(text_alone, steps, seed)
        found.append((comparison, compared))
        if comparison.verdict is Verdict.DIFFERENT:
            break
    return max(found, key=_severity)


SEVERITY = {Verdict.IDENTICAL: 0, Verdict.EQUIVALENT: 1, Verdict.NOTHING_PROVEN: 2}


def _severity(pair: tuple[Comparison, EmittedOptimizer]) -> tuple[int, float]:
    """The order of comparisons: by their verdicts, then by their errors."""
    comparison, _ = pair
    return SEVERITY.get(comparison.verdict, len(SEVERITY)), comparison.error


@cache
def _compared(
    emitted: EmittedOptimizer, steps: int, seed: int
) -> tuple[Comparison, EmittedOptimizer]:
    """Compare one variant; the same texts are compared once."""
    old, new = evaluate(emitted)
    overrides = rate if sets_rate(emitted) else None
    params = probe_params(**probe_for(emitted, seed))
    comparison = compare_probed(
        old,
        new,
        steps,
        seed,
        params,
        overrides,
        horizon=horizon(emitted, steps),
        sizes=sizes(emitted),
    )
    return comparison, emitted
