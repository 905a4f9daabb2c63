"""The verdict on parameters, with that on the states of optimizers."""

from __future__ import annotations

from dataclasses import replace

from optim2optax.parity.judging.comparison import Comparison, Verdict

NOT_COMPARED = "The state of the optimizer was not compared."
ALIKE = "The parameters agree; what the optimizer keeps beside them does not."


def merged(comparison: Comparison, found: Comparison) -> Comparison:
    """The comparison of the parameters, with that of the states added to it."""
    if found.verdict is Verdict.DIFFERENT:
        return replace(found, remarks=(ALIKE,))
    # Identical as a whole are only identical parameters with an identical state.
    same = comparison.verdict is found.verdict is Verdict.IDENTICAL
    return replace(
        comparison,
        verdict=Verdict.IDENTICAL if same else Verdict.EQUIVALENT,
        error=max(comparison.error, found.error),
        leaves=(*comparison.leaves, *found.leaves),
        error_by_step=tuple(map(max, comparison.error_by_step, found.error_by_step)),
    )
