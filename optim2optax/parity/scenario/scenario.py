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

from optim2optax.parity.judging.comparison import Comparison, Verdict
from optim2optax.parity.judging.judge import compare_trajectories
from optim2optax.parity.judging.leaves import leaves_by_path
from optim2optax.parity.judging.noise import settled
from optim2optax.parity.scenario.baseline import Baseline
from optim2optax.parity.scenario.driving import drive
from optim2optax.parity.scenario.elsewhere import drive_elsewhere
from optim2optax.parity.scenario.evidence import evidence_of
from optim2optax.parity.scenario.open_loop import compare_open_loop
from optim2optax.parity.scenario.states import States, with_states
from optim2optax.parity.scenario.tape import Tape
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
        old, replay = drive_elsewhere(legacy_python, scenario, before, steps)
        tape = Tape()
        new, _ = drive(scenario, after, False, steps, tape)
        evidence = evidence_of(Tape(), tape, old)
        return compare_trajectories(old, new, closed_loop=not replay, evidence=evidence)
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
    tapes = Tape(), Tape()
    try:
        return _run_both_loops(scenario, before, after, steps, tapes, wide=True)
    except Exception:
        # A program that was given float64 in the place of float32 may fail for that alone.
        if not any(tape.widened for tape in tapes):
            raise
    tapes = Tape(), Tape()
    return _run_both_loops(scenario, before, after, steps, tapes, wide=False)


def _run_both_loops(
    scenario: Path,
    before: Path,
    after: Path,
    steps: int | None,
    tapes: tuple[Tape, Tape],
    wide: bool,
) -> tuple[Comparison, Comparison | None]:
    old_tape, new_tape = tapes
    old_states = States()
    new_states = States()
    old, replay = drive(scenario, before, True, steps, old_tape, old_states, wide=wide)
    new, _ = drive(scenario, after, False, steps, new_tape, new_states, wide=wide)
    evidence = evidence_of(old_tape, new_tape, old)

    def compare(gate: float | None = None) -> Comparison:
        return compare_trajectories(
            old, new, closed_loop=not replay, evidence=evidence, gate=gate
        )

    def noise() -> Comparison | None:
        """The old side against itself, with each new parameter off by a unit in the last place."""
        tape = Tape()
        try:
            again, _ = drive(
                scenario, before, True, steps, tape, rounding=True, wide=wide
            )
            found = compare_trajectories(
                old, again, closed_loop=True, evidence=evidence
            )
        except Exception:  # noqa: BLE001 - a user's code may check a value that is another one here
            return None
        # A program that steps by hand was not rounded otherwise.
        was_rounded = tape.steps or tape.defined
        return found if was_rounded else None

    parameters_alone = settled(compare(), compare, noise)
    with precise():
        closed = with_states(parameters_alone, old_states, new_states, evidence)
        opened = compare_open_loop(old_tape, new_tape)
    return closed, opened


def baseline_of(
    scenario: Path, before: Path, legacy_python: Path | None = None
) -> Baseline:
    """The baseline of a scenario: what its old side yields."""
    if legacy_python is not None:
        values, replay = drive_elsewhere(legacy_python, scenario, before, None)
    else:
        values, replay = drive(scenario, before, True, None, Tape())
    return Baseline([leaves_by_path(value) for value in values], replay)


def compare_with_baseline(
    baseline: Baseline, scenario: Path, after: Path
) -> Comparison:
    """Run a scenario on the new code alone, and compare it with what the old code once yielded."""
    tape = Tape()
    new, _ = drive(scenario, after, False, None, tape)
    evidence = evidence_of(Tape(), tape, baseline.values)
    return compare_trajectories(
        baseline.values, new, closed_loop=not baseline.replay, evidence=evidence
    )
