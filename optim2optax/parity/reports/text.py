"""The report for a terminal."""

from __future__ import annotations

from itertools import chain

import click

from optim2optax.parity.judge import REPLAY_GATE, Comparison, Difference
from optim2optax.parity.result import Case, Environment, Outcome, Report

COLORS = {
    Outcome.IDENTICAL: "green",
    Outcome.EQUIVALENT: "green",
    Outcome.DIFFERENT: "red",
    Outcome.COULD_NOT_RUN: "yellow",
    Outcome.NOTHING_PROVEN: "yellow",
}
WIDTH = max(len(outcome.value) for outcome in Outcome)


def render_text(report: Report, color: bool = False) -> str:
    """A line for each case, those that do not pass first, with its remarks below it.

    Totals and environment follow.
    """
    lines = list(chain.from_iterable(map(_case, report.cases)))
    text = "\n".join([*lines, "", _totals(report), _environment(report.environment), ""])
    return text if color else click.unstyle(text)


def words(outcome: Outcome) -> str:
    """An outcome as people read it."""
    return outcome.value.replace("_", " ")


def _case(case: Case) -> list[str]:
    verdict = click.style(f"{words(case.outcome):<{WIDTH}}", fg=COLORS[case.outcome], bold=True)
    head = f"{verdict}  {case.name}"
    if case.comparison is None:
        return [head, *(f"    {line}" for line in case.reason.splitlines())]
    found = [f"{head}  {click.style(figures(case.comparison), dim=True)}"]
    if case.comparison.first_difference is not None:
        found.append(f"    first at {place(case.comparison.first_difference)}")
    # Where nothing is proven, the remark is the message itself.
    prefix = "" if case.outcome is Outcome.NOTHING_PROVEN else "note: "
    return [*found, *(f"    {prefix}{line}" for line in case.remarks)]


def figures(comparison: Comparison) -> str:
    """Steps, error and drift in one line, and the gate where it is not that of a replay."""
    drift = "" if comparison.drift is None else f", float32 drift {comparison.drift:.1e}"
    error = f"error over movement {comparison.error:.1e}{gate(comparison)}"
    return f"{comparison.steps} steps, {error}{drift}"


def gate(comparison: Comparison) -> str:
    """The gate of a comparison in brackets, where it is not that of a replay."""
    return "" if comparison.gate == REPLAY_GATE else f" (closed loop, gate {comparison.gate:.0e})"


def place(difference: Difference) -> str:
    """Where a difference is, and how large, in one line."""
    apart = "" if difference.ulp is None else f", {difference.ulp:,} ulp apart"
    link = "" if difference.link is None else f"; what departs: {difference.link}"
    return f"{difference}{apart}{link}"


def _totals(report: Report) -> str:
    parts = [f"{number} {words(Outcome(name))}" for name, number in report.summary.items()]
    noun = "case" if len(report.cases) == 1 else "cases"
    return f"{len(report.cases)} {noun}: {', '.join(parts)}"


def _environment(found: Environment) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return (
        f"on {found.device_count} × {found.device_kind} ({found.platform}); "
        f"{versions}; seed {found.seed}; "
        f"matrix products at {found.matmul_precision} precision; "
        f"XLA_FLAGS={found.xla_flags or 'none'}"
    )
