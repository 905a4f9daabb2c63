"""Run the user's own training command on both trees, and compare every update that it applies."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from optim2optax.parity.command.compare import (
    DifferentParametersError,
    compare_replays,
    compare_states,
    compare_updates,
)
from optim2optax.parity.command.left_behind import compare_left_behind, with_left_behind
from optim2optax.parity.command.runs import (
    USUAL,
    CommandError,
    FailedError,
    RunOptions,
    Runs,
)
from optim2optax.parity.command.updates import Kind, Recording, Update, uncounted
from optim2optax.parity.judging.comparison import (
    CLOSED_LOOP_GATE,
    Comparison,
    Verdict,
    merged,
    severity,
    with_open_loop,
)
from optim2optax.parity.judging.noise import settled
from optim2optax.parity.recording.any_optimizer import is_small


def compare_command(
    command: Sequence[str], before: str, folder: Path, options: RunOptions = USUAL
) -> Comparison:
    """Run a command on both sides, and judge whether they applied the same updates.

    `before` is the old tree: a folder, or a revision of the git repository around `folder`, where
    the command is given. The tree around that, as it is now, is the new one.

    Raises:
        CommandError: if a side failed, took no step or ran code of the user's own tree, or if
            the old side has no legacy optimizer, or other parameters than the new one.
        TreeError: if the old tree cannot be copied, or a link leads nowhere.
    """
    with tempfile.TemporaryDirectory(prefix="optim2optax-") as temporary:
        runs = Runs(command, before, folder, options, Path(temporary).resolve())
        found = _judged(runs)
    if not runs.linked:
        return found
    names = ", ".join(map(str, runs.linked))
    remark = f"The old side has a link to what git ignores in your tree: {names}."
    return replace(found, remarks=(*found.remarks, remark))


def _judged(runs: Runs) -> Comparison:
    """Judge the runs in float64, or in the program's own precision where it insists on float32."""
    in_float32 = replace(runs, wide=False)
    try:
        found = _compared(runs)
        insists = found.verdict is Verdict.DIFFERENT and keeps_float32(runs)
        instead = compared_in_float32(in_float32) if insists else None
    except FailedError:
        # The program may not run in float64: `jnp.zeros(3, jnp.float32)` as the carry of a scan.
        instead = compared_in_float32(in_float32)
        if instead is None:
            raise
    if instead is None:
        return _with_left_behind(found, runs)
    return _with_left_behind(instead, in_float32)


def _compared(runs: Runs) -> Comparison:
    """Judge the closed loop by parameters, then by states of optimizers, and then the open loop."""
    old, new = runs.old.updates, runs.new.updates

    def compare(gate: float | None = None) -> Comparison:
        return compare_updates(old, new, gate)

    def noise() -> Comparison | None:
        try:
            if runs.again is None:
                return None
            return compare_updates(old, runs.again.updates)
        except DifferentParametersError:
            return None

    closed = with_states(settled(compare(), compare, noise), runs)
    opened, without = _opened(runs)
    found = with_open_loop(closed, opened)
    return replace(found, remarks=(*found.remarks, *without, *uncounted(old, new)))


def with_states(found: Comparison, runs: Runs) -> Comparison:
    """The comparison, with that of the optimizers' states, such as their momentum."""
    for kind, updates in runs.old.of_optimizers.items():
        if found.verdict in (Verdict.DIFFERENT, Verdict.NOTHING_PROVEN):
            return found
        found = merged(found, _states_compared(kind, updates, runs))
    return found


def _states_compared(
    kind: Kind, old: Sequence[Update], runs: Runs
) -> Comparison | None:
    """The comparison of the states of one optimizer; None if no places are known to correspond."""
    places = runs.new.corresponding.get(kind, ())
    new = runs.new.updates[kind]

    def compare(gate: float | None = None) -> Comparison | None:
        return compare_states(old, new, places, gate)

    def noise() -> Comparison | None:
        if runs.again is None:
            return None
        rounded = runs.again.updates.get(kind, [])
        # Both are runs of the old side: each place corresponds to itself.
        themselves = [(source, source, 1) for _, source, _ in places]
        return compare_states(old, rounded, themselves)

    found = compare()
    if found is None:
        return None
    return settled(found, lambda gate: compare(gate) or found, noise)


def _opened(runs: Runs) -> tuple[Comparison | None, list[str]]:
    """The comparison of the new transformations alone, on the old side's gradients.

    It is that of the worst optimizer. The texts say why others cannot be compared.
    """
    opened: list[Comparison] = []
    without: list[str] = []
    for kind, updates in runs.old.of_optimizers.items():
        if kind in runs.new.replays:
            opened.append(compare_replays(updates, runs.new.replays[kind]))
            continue
        reason = why_not_replayed(kind, updates, runs.new)
        optimizer = shown_kind(kind)
        without.append(f"In open loop, {optimizer} cannot be compared: {reason}.")
    worst = max(opened, key=lambda comparison: comparison.error, default=None)
    return worst, without


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


def _with_left_behind(found: Comparison, runs: Runs) -> Comparison:
    """The comparison, with that of files and lines, which needs a further run of the old side."""
    # A difference of updates explains any difference of files.
    is_wanted = runs.options.files or runs.options.lines
    if not is_wanted or found.verdict is Verdict.DIFFERENT:
        return found
    again = None if runs.again is None else runs.again.left
    gate = CLOSED_LOOP_GATE if runs.wide else FLOAT32_GATE
    return with_left_behind(
        found, compare_left_behind(runs.old.left, runs.new.left, again, gate)
    )


FLOAT32_GATE = 1e-5
"""The gate of a closed loop in float32, unless rounding explains more,"""

FACTOR_IN_FLOAT32 = 20
"""which is so many times what becomes of one unit in the last place.

The usual factor would let faults of a thousandth pass.
"""

IN_FLOAT32 = (
    "The program insists on float32. "
    "It ran in that, and its updates alone are judged, computed anew in float64."
)


def keeps_float32(runs: Runs) -> bool:
    """Whether either side has parameters in float32, though float64 is the default."""
    for side in (runs.old, runs.new):
        for updates in side.of_optimizers.values():
            if any(values.dtype == np.float32 for values in updates[0].after.values()):
                return True
    return False


def compared_in_float32(runs: Runs) -> Comparison | None:
    """Judge a program that insists on float32 by its updates, which are computed anew in float64.

    The closed loop has the last word where it departs by more than rounding explains. The result
    is None if the program does not run in its own precision either.
    """
    try:
        old, new = runs.old.updates, runs.new.updates
        closed = compare_updates(old, new, FLOAT32_GATE)
        if closed.error >= FLOAT32_GATE and runs.again is not None:
            # What rounding in float32 does to this program is no difference.
            noise = FACTOR_IN_FLOAT32 * compare_updates(old, runs.again.updates).error
            closed = compare_updates(old, new, max(FLOAT32_GATE, noise))
    except CommandError:
        return None
    if closed.verdict is Verdict.DIFFERENT:
        return replace(closed, remarks=(IN_FLOAT32, *closed.remarks))
    shadows, replays = runs.old.replays, runs.new.replays
    judged = []
    for kind, updates in runs.old.of_optimizers.items():
        if kind not in shadows or kind not in replays:
            reason = why_not_replayed(kind, updates, runs.new)
            why = f"Of {shown_kind(kind)} that cannot be done: {reason}."
            return replace(
                closed, verdict=Verdict.NOTHING_PROVEN, remarks=(IN_FLOAT32, why)
            )
        judged.append(compare_replays(updates, replays[kind], shadows[kind]))
    worst = max(judged, key=severity)
    return replace(
        worst,
        drift=closed.error,
        drift_by_step=closed.error_by_step,
        remarks=(IN_FLOAT32, *worst.remarks),
    )
