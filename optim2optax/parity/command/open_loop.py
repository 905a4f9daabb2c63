"""The open loop of a command: the new transformations alone, on the old side's gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optim2optax.parity.command.compare import (
    compare_replays,
)
from optim2optax.parity.command.recorded import Recording, of_optimizers
from optim2optax.parity.command.runs import Runs
from optim2optax.parity.command.updates import Kind, Update, by_kind
from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.judging.wording import OPEN_LOOP, figures
from optim2optax.parity.recording.kinds import is_small


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
