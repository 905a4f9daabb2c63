"""One case each: run, and turned into what a report says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import jax

from codemods.model import EmittedOptimizer
from optim2optax.parity.command.runs import USUAL, CommandError, RunOptions
from optim2optax.parity.command.verdict import compare_command
from optim2optax.parity.judging.comparison import Comparison, with_open_loop
from optim2optax.parity.optimizer.coverage import legacy_within
from optim2optax.parity.optimizer.emitted_pair import compare_variants
from optim2optax.parity.optimizer.evaluating import UnevaluableError
from optim2optax.parity.reports.result import Case
from optim2optax.parity.running.trees import TreeError
from optim2optax.parity.scenario.baseline import (
    BaselineError,
    drive_elsewhere,
    load_baseline,
)
from optim2optax.parity.scenario.scenario import (
    compare_with_baseline,
    run_both_loops,
)
from optim2optax.workers import share

OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"
REMEDY = "Let nothing else use it, give fewer --jobs, or choose another --platform."
COMPLETE = UnevaluableError | BaselineError | CommandError | TreeError
"""The errors whose messages say all."""


def _tried(case: Case, compare: Callable[[], tuple[Comparison, str]]) -> Case:
    """A case with its comparison and the reason beside it, or with what a user's code raises."""
    try:
        comparison, reason = compare()
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return replace(case, reason=_reason(error))
    return replace(case, comparison=comparison, reason=reason)


def _reason(error: BaseException) -> str:
    """Why a case could not run."""
    # The cause of an UnevaluableError is what the evaluation raised.
    for found in (error, error.__cause__):
        if isinstance(found, jax.errors.JaxRuntimeError):
            message = str(found)
            if message.startswith(OUT_OF_MEMORY):
                # RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes.
                first, _, _ = message.removeprefix(OUT_OF_MEMORY).partition("\n")
                first = first.strip(" :.")
                return f"The memory of the device does not suffice: {first}. {REMEDY}"
    is_complete = isinstance(error, COMPLETE)
    return str(error) if is_complete else f"{type(error).__name__}: {error}"


def optimizer_case(name: str, emitted: EmittedOptimizer, steps: int, seed: int) -> Case:
    """Compare an optimizer that is emitted with the one that it replaces."""

    def compare() -> tuple[Comparison, str]:
        comparison = compare_variants(emitted, steps, seed)
        return comparison, _known_fault(emitted, comparison)

    case = Case(name, "optimizer", None, emitted.before, emitted.after)
    return _tried(case, compare)


def _known_fault(emitted: EmittedOptimizer, comparison: Comparison) -> str:
    """A known fault of the old side, if it shows; the new side has it too."""
    lost = ", ".join(leaf.leaf for leaf in comparison.leaves if not leaf.finite)
    for legacy in legacy_within(emitted.legacy_expression):
        if lost and legacy.fault:
            what = f"{lost} is not finite on the old side."
            return f"The old {legacy.name} {legacy.fault}: {what}"
    return ""


def command_case(
    name: str,
    command: Sequence[str],
    before: str,
    folder: Path,
    options: RunOptions = USUAL,
) -> Case:
    """Run a training command on the old tree and on the new."""
    return _tried(
        Case(name, "command", None),
        lambda: (compare_command(command, before, folder, options), ""),
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def scenario_case(
    name: str,
    scenario: Path,
    before: Path,
    after: Path,
    legacy_python: Path | None = None,
    against: Path | None = None,
) -> Case:
    """Drive the old code and the new through a scenario.

    The old code runs under `legacy_python`, if that is given, and not at all if what it once
    yielded is in a file `against` which to compare.
    """

    def compare() -> tuple[Comparison, str]:
        if against is not None:
            baseline = load_baseline(against, name)
            found = compare_with_baseline(baseline, scenario, after)
            return found, f"The old side is that of {against}."
        if legacy_python is not None:
            baseline = drive_elsewhere(legacy_python, scenario, before)
            return compare_with_baseline(baseline, scenario, after), ""
        return with_open_loop(*run_both_loops(scenario, before, after)), ""

    text = "" if against else _text(before)
    return _tried(Case(name, "scenario", None, text, _text(after)), compare)


STEPS, SEED = 120, 0


def prove(optimizers: Sequence[EmittedOptimizer], jobs: int = 1) -> list[Case]:
    """A comparison of the old and the new form of each optimizer that `rewrite` emits."""
    # One comparison is not worth the start of a process.
    return [*share(_case, optimizers, jobs if len(optimizers) > 1 else 1)]


def _case(optimizer: EmittedOptimizer) -> Case:
    return optimizer_case(optimizer.before, optimizer, STEPS, SEED)
