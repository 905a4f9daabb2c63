"""Drive a user's own functions, old and new, through the same small script, and compare results.

A scenario is a Python file with a generator `run(module)`. It gets the imported module, which is
the old code or the new, and yields what to compare, usually the optimizer: once at the start, and
again after each step.

    def run(module):
        state = module.create(jax.random.PRNGKey(0))
        yield state
        for batch in batches():
            state = module.train_step(state, batch)
            yield state

Its steps are a closed loop, in which each side computes its own gradients. A scenario that feeds
recorded gradients to both sides says `replay = True` at its top level, and is then judged by the
much narrower gate of a replay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import optax
from numpy.typing import NDArray

from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.judging.judge import compare_trajectories, judge
from optim2optax.parity.judging.leaves import leaves_by_path
from optim2optax.parity.judging.noise import settled
from optim2optax.parity.replaying import Step, replayed
from optim2optax.parity.scenario.baseline import Baseline, drive_elsewhere
from optim2optax.parity.scenario.driving import drive
from optim2optax.parity.scenario.states import with_states
from optim2optax.parity.scenario.tape import Tape, distinct, evidence_of
from optim2optax.precision import precise


def run_scenario(
    scenario: Path,
    before: Path,
    after: Path,
    steps: int | None = None,
    legacy_python: Path | None = None,
) -> Comparison:
    """Run a scenario on the old code and on the new, and judge whether they train alike.

    Both run in float64.

    Args:
        scenario: the file with `run(module)`.
        before: the old code, which is run with the real `flax.optim`.
        after: the new code.
        steps: how many of the yielded values to compare; None means all.
        legacy_python: an interpreter with a Flax of its own, under which the old code is run;
            None runs it in this process.

    Returns:
        The comparison; its step 0 is the first value yielded.

    Raises:
        ValueError: if the two sides yield different numbers of values, or values that do not
            correspond.
    """
    if legacy_python is not None:
        baseline = drive_elsewhere(legacy_python, scenario, before, steps)
        return compare_with_baseline(baseline, scenario, after, steps)
    closed, opened = run_both_loops(scenario, before, after, steps)
    if closed.verdict is Verdict.DIFFERENT or opened is None:
        return closed
    # Rounding may hide in the closed loop what the open loop shows.
    return opened if opened.verdict is Verdict.DIFFERENT else closed


def run_both_loops(
    scenario: Path, before: Path, after: Path, steps: int | None = None
) -> tuple[Comparison, Comparison | None]:
    """Run a scenario in closed loop as `run_scenario` does, and its optimizers in open loop.

    Returns:
        The comparison of what the scenario yields, and that of the optimizers alone, on the
        gradients that the old side computed, where the code allows it.
    """
    sides = Tape(), Tape()
    try:
        return _run_both_loops(scenario, before, after, steps, *sides)
    except Exception:
        # A program that was given float64 in the place of float32 may fail for that alone.
        if not any(side.widened for side in sides):
            raise
    sides = Tape(wide=False), Tape(wide=False)
    return _run_both_loops(scenario, before, after, steps, *sides)


def _run_both_loops(
    scenario: Path, before: Path, after: Path, steps: int | None, old: Tape, new: Tape
) -> tuple[Comparison, Comparison | None]:
    drive(scenario, before, True, old, steps)
    drive(scenario, after, False, new, steps)
    evidence = evidence_of(old, new)

    def compare(gate: float | None = None) -> Comparison:
        return compare_trajectories(
            old.values, new.values, None, not old.replay, evidence, gate
        )

    def noise() -> Comparison | None:
        """The old side against itself, with each new parameter off by a unit in the last place."""
        again = Tape(rounding=True, wide=old.wide)
        try:
            drive(scenario, before, True, again, steps)
            found = compare_trajectories(
                old.values, again.values, closed_loop=True, evidence=evidence
            )
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
) -> Baseline:
    """The baseline of a scenario: what its old side yields."""
    if legacy_python is not None:
        return drive_elsewhere(legacy_python, scenario, before)
    old = Tape()
    drive(scenario, before, True, old)
    return Baseline([leaves_by_path(value) for value in old.values], old.replay)


def compare_with_baseline(
    baseline: Baseline, scenario: Path, after: Path, steps: int | None = None
) -> Comparison:
    """Run a scenario on the new code alone, and compare it with what the old code once yielded."""
    old, new = Tape(), Tape()
    old.values = [*baseline.values]
    drive(scenario, after, False, new, steps)
    return compare_trajectories(
        old.values,
        new.values,
        closed_loop=not baseline.replay,
        evidence=evidence_of(old, new),
    )


def compare_open_loop(old: Tape, new: Tape) -> Comparison | None:
    """Replay the steps of the old side into the transformations of the new side.

    Returns:
        The comparison of the optimizer that departs most. It is None if the code does not allow
        it: if several optimizers have parameters of one kind, their counts do not go up by one
        from 0, or their states or hyperparameters were set by hand.
    """
    if not old.complete:
        return None
    compared: list[Comparison] = []
    for kind, recorded in old.recorded().items():
        transformations = list(new.transformations.get(kind, {}).values())
        # A GAN may have two optimizers of one kind; which of them took a step is not known.
        if len(transformations) != 1:
            return None
        steps = sorted(distinct(recorded), key=lambda step: step.count)
        counts = [step.count for step in steps]
        # A run that goes on from a checkpoint begins with a later step.
        if counts != list(range(len(steps))):
            return None
        compared.append(_replay(transformations[0], steps))
    return max(compared, key=lambda comparison: comparison.error, default=None)


def _replay(
    transformation: optax.GradientTransformation, steps: list[Step]
) -> Comparison:
    """Judge the steps of an old optimizer and their replay."""
    new = [leaves_by_path(moved) for moved in replayed(transformation, steps)]
    old = [leaves_by_path(step.after) for step in steps]
    before: dict[str, NDArray[Any]] = {}
    after: dict[str, NDArray[Any]] = {}
    for leaf in new[0]:
        before[leaf] = np.stack([values[leaf] for values in old])
        after[leaf] = np.stack([values[leaf] for values in new])
    start = leaves_by_path(steps[0].before)
    return judge(before, after, start)
