"""Drive a user's own functions, old and new, through the same small script, and compare results.

A scenario is a Python file with a generator `run(module)`. It gets the imported module, which is
the old code or the new, and yields what to compare, usually the optimizer: once at the start, and
again after each step. Its steps are a closed loop, in which each side computes its own gradients.
A scenario that feeds recorded gradients to both sides says `replay = True` at its top level, and is
then judged by the much narrower gate of a replay.
"""

from __future__ import annotations

from pathlib import Path

from optim2optax.parity.judging.comparison import Comparison
from optim2optax.parity.judging.exercised import Evidence
from optim2optax.parity.judging.judge import compare_trajectories
from optim2optax.parity.judging.noise import settled
from optim2optax.parity.recording.inputs import why_not
from optim2optax.parity.replaying import replayed
from optim2optax.parity.scenario.baseline import drive_elsewhere
from optim2optax.parity.scenario.driving import drive
from optim2optax.parity.scenario.states import with_states
from optim2optax.parity.scenario.tape import Tape, evidence_of
from optim2optax.precision import precise


def run_both_loops(
    scenario: Path, before: Path, after: Path
) -> tuple[Comparison, Comparison | None]:
    """Run a scenario on the old code and on the new, and judge whether they train alike.

    Both run in float64, the old code with the real `flax.optim`.

    Returns:
        The comparison of what the scenario yields, with step 0 for the first value, and that of
        the optimizers alone, on the gradients that the old side computed, where the code allows
        it.

    Raises:
        ValueError: if the two sides yield different numbers of values, or values that do not
            correspond.
    """
    old, new = Tape(), Tape()
    try:
        return _run_both_loops(scenario, before, after, old, new)
    except Exception:
        # A program that was given float64 in the place of float32 may fail for that alone.
        if not (old.widened or new.widened):
            raise
    narrow = Tape(wide=False), Tape(wide=False)
    return _run_both_loops(scenario, before, after, *narrow)


def _run_both_loops(
    scenario: Path, before: Path, after: Path, old: Tape, new: Tape
) -> tuple[Comparison, Comparison | None]:
    drive(scenario, before, True, old)
    drive(scenario, after, False, new)
    evidence = evidence_of(old, new)

    def compare(gate: float | None = None) -> Comparison:
        return _compared(old, new, evidence, gate)

    def noise() -> Comparison | None:
        """The old side against itself, with each new parameter off by a unit in the last place."""
        again = Tape(rounding=True, wide=old.wide)
        try:
            drive(scenario, before, True, again)
            found = _compared(old, again, evidence)
        except Exception:  # noqa: BLE001 - a user's code may check a value that is another one here
            return None
        # A program that steps by hand was not rounded otherwise.
        was_rounded = again.steps or again.defined
        return found if was_rounded else None

    parameters_alone = settled(compare(), compare, noise)
    with precise():
        closed = with_states(parameters_alone, old.states, new.states, evidence)
        opened = compare_open_loop(old, new)
    return closed, opened


def baseline_of(
    scenario: Path, before: Path, legacy_python: Path | None = None
) -> Tape:
    """What the old side of a scenario yields, to be kept."""
    if legacy_python is not None:
        return drive_elsewhere(legacy_python, scenario, before)
    old = Tape()
    drive(scenario, before, True, old)
    return old


def compare_with_baseline(old: Tape, scenario: Path, after: Path) -> Comparison:
    """Run a scenario on the new code alone, and compare it with what the old code once yielded."""
    new = Tape()
    drive(scenario, after, False, new)
    return _compared(old, new, evidence_of(old, new))


def _compared(
    old: Tape, new: Tape, evidence: Evidence, gate: float | None = None
) -> Comparison:
    """Judge what both sides yielded."""
    return compare_trajectories(
        old.values, new.values, None, not old.replay, evidence, gate
    )


def compare_open_loop(old: Tape, new: Tape) -> Comparison | None:
    """Replay the steps of the old side into the transformations of the new side.

    Returns:
        The comparison of the optimizer that departs most. It is None if the code does not allow
        it, which `why_not` would tell.
    """
    compared: list[Comparison] = []
    for kind, recorded in old.recorded().items():
        transformations = list(new.transformations.get(kind, {}).values())
        steps = sorted(recorded, key=lambda step: step.number)
        lost = not old.complete
        if not transformations or why_not(lost, steps, len(transformations)):
            return None
        after = [step.after for step in steps]
        moved = [*replayed(transformations[0], steps)]
        compared.append(compare_trajectories(after, moved, steps[0].before))
    return max(compared, key=lambda comparison: comparison.error, default=None)
