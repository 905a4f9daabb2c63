"""The report for a terminal."""

from __future__ import annotations

from itertools import chain

import click

from optim2optax.parity.judging.comparison import Verdict, figures, place
from optim2optax.parity.reports.result import Case, Environment, Report

COLORS = {
    Verdict.IDENTICAL: "green",
    Verdict.EQUIVALENT: "green",
    Verdict.DIFFERENT: "red",
    Verdict.COULD_NOT_RUN: "yellow",
    Verdict.NOTHING_PROVEN: "yellow",
}
WIDTH = max(len(outcome.value) for outcome in Verdict)


def render_text(report: Report, color: bool = False) -> str:
    """A line for each case, those that do not pass first, with its remarks below it.

    Totals and environment follow.
    """
    lines = list(chain.from_iterable(map(_case, report.cases)))
    lines += ["", _totals(report), _environment(report.environment), ""]
    text = "\n".join(lines)
    return text if color else click.unstyle(text)


def _case(case: Case) -> list[str]:
    """The lines of a case: its verdict with figures, and below it where it differs and remarks."""
    text = f"{case.outcome.words:<{WIDTH}}"
    verdict = click.style(text, fg=COLORS[case.outcome], bold=True)
    head = f"{verdict}  {case.name}"
    comparison = case.comparison
    below: list[str] = []
    if comparison is not None:
        head += f"  {click.style(figures(comparison), dim=True)}"
        if comparison.first_difference is not None:
            below.append(place(comparison.first_difference))
    # Where nothing is proven, the remark is the message itself.
    is_message = case.outcome in (Verdict.NOTHING_PROVEN, Verdict.COULD_NOT_RUN)
    prefix = "" if is_message else "note: "
    below += [f"{prefix}{line}" for line in case.remarks]
    return [head, *(f"    {line}" for line in below)]


def _totals(report: Report) -> str:
    noun = "case" if len(report.cases) == 1 else "cases"
    return f"{len(report.cases)} {noun}: {report.totals}"


def _environment(found: Environment) -> str:
    return (
        f"on {found.device_count} × {found.device_kind} ({found.platform}); "
        f"{found.named_versions}; seed {found.seed}; "
        f"matrix products at {found.matmul_precision} precision; "
        f"XLA_FLAGS={found.xla_flags or 'none'}"
    )
