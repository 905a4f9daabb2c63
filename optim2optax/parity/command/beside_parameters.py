"""What is compared of each optimizer beside its parameters: its state, and the open loop.

The open loop is the new transformation alone, on the old side's gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optim2optax.parity.command.compare import (
    compare_replays,
    compare_states,
)
from optim2optax.parity.command.runs import Runs
from optim2optax.parity.command.updates import (
    Kind,
    Recording,
    Update,
    by_kind,
    of_optimizers,
)
from optim2optax.parity.judging.comparison import (
    OPEN_LOOP,
    Comparison,
    Verdict,
    figures,
    merged,
)
from optim2optax.parity.judging.noise import settled
from optim2optax.parity.recording.any_optimizer import is_small


def with_states(found: Comparison, runs: Runs) -> Comparison:
    """The comparison, with that of the optimizers' states, such as their momentum."""
    for kind, updates in of_optimizers(runs.old).items():
        if found.verdict in (Verdict.DIFFERENT, Verdict.NOTHING_PROVEN):
            return found
        found = merged(found, _states_compared(kind, updates, runs))
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


def with_open_loop(found: Comparison, runs: Runs) -> Comparison:
    """The comparison, with that of the new transformations alone, on the old side's gradients."""
    replays = by_kind(runs.new.replays)
    opened: list[Comparison] = []
    without: list[str] = []
    for kind, updates in of_optimizers(runs.old).items():
        if kind in replays:
            opened.append(compare_replays(updates, replays[kind]))
            continue
        reason = why_not_replayed(kind, updates, runs.new)
        optimizer = shown_kind(kind)
        without.append(f"In open loop, {optimizer} cannot be compared: {reason}.")
    # The worst of several optimizers speaks for all.
    worst = max(opened, key=lambda comparison: comparison.error, default=None)
    if worst is None:
        return replace(found, remarks=(*found.remarks, *without))
    # Rounding may hide in the closed loop what the open loop shows.
    if worst.verdict is Verdict.DIFFERENT and found.verdict is not Verdict.DIFFERENT:
        return replace(worst, remarks=(OPEN_LOOP,))
    measured = f"In open loop: {figures(worst)}."
    return replace(found, remarks=(*found.remarks, measured, *without))


def why_not_replayed(kind: Kind, old: Sequence[Update], new: Recording) -> str:
    """Why the new side has no replays of an optimizer of the old one."""
    if not is_small(kind):
        return "its gradients are too large to be kept"
    # params = optax.apply_updates(params, updates)
    by_hand = any(update.step is None for update in old)
    if by_hand:
        return "the old side applies its updates by hand"
    return new.not_replayed.get(kind, "the new side applies its updates by hand")


def shown_kind(kind: Kind) -> str:
    """An optimizer as people read it: by the first of its leaves."""
    leaf, _ = kind[0]
    others = len(kind) - 1
    text = f"the optimizer of {leaf}"
    return f"{text} and {others} more" if others else text
