"""What the optimizers of a command keep beside their parameters, such as their momentum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optim2optax.parity.command.compare import (
    compare_states,
)
from optim2optax.parity.command.recorded import of_optimizers
from optim2optax.parity.command.runs import Runs
from optim2optax.parity.command.updates import Kind, Update, by_kind
from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.judging.noise import settled
from optim2optax.parity.judging.states import NOT_COMPARED, merged


def with_states(found: Comparison, runs: Runs) -> Comparison:
    """The comparison, with that of the optimizers' states, such as their momentum."""
    for kind, updates in of_optimizers(runs.old).items():
        if found.verdict in (Verdict.DIFFERENT, Verdict.NOTHING_PROVEN):
            return found
        state = _states_compared(kind, updates, runs)
        if state is None:
            found = replace(found, remarks=(*found.remarks, NOT_COMPARED))
        elif state.verdict is Verdict.NOTHING_PROVEN:
            found = replace(found, remarks=(*found.remarks, *state.remarks))
        else:
            found = merged(found, state)
    return found


def _states_compared(
    kind: Kind, old: Sequence[Update], runs: Runs
) -> Comparison | None:
    """The comparison of the states of one optimizer; None if no places are known to correspond."""
    places = runs.new.corresponding.get(kind, ())
    new = by_kind(runs.new.updates)[kind]

    def compare(gate: float | None = None) -> Comparison | None:
        return compare_states(old, new, places, gate)

    def noise() -> Comparison | None:
        if runs.again is None:
            return None
        rounded = by_kind(runs.again.updates).get(kind, [])
        # Both are runs of the old side: each place corresponds to itself.
        themselves = [(source, source, 1) for _, source, _ in places]
        return compare_states(old, rounded, themselves)

    found = compare()
    if found is None:
        return None
    return settled(found, lambda gate: compare(gate) or found, noise)
