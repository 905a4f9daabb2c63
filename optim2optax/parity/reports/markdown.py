"""The report for a pull request or the summary of a CI run."""

from __future__ import annotations

import html
import re
from itertools import accumulate

from optim2optax.parity.judging.wording import gate, place
from optim2optax.parity.reports.result import Case, Outcome, Report
from optim2optax.parity.reports.text import words

LIMIT = 500_000
"""UTF-8 bytes. GitHub takes a mebibyte."""

SIGNS = {
    Outcome.IDENTICAL: "✅",
    Outcome.EQUIVALENT: "✅",
    Outcome.DIFFERENT: "❌",
    Outcome.COULD_NOT_RUN: "⚠️",
    Outcome.NOTHING_PROVEN: "⚠️",
}


def render_markdown(report: Report, limit: int = LIMIT) -> str:
    """A table of all cases, those that do not pass first, and a section for each of these.

    Args:
        report: what was found.
        limit: how many UTF-8 bytes there may be. The rest is left out, and a last sentence says of
            how many cases.
    """
    cases = report.cases
    # Each part comes with the number of its case, if it is of one.
    parts: list[tuple[int | None, str]] = [(None, _head(report))]
    parts += [(number, _row(case)) for number, case in enumerate(cases)]
    parts.append((None, "\n"))
    parts += [(number, _details(case)) for number, case in enumerate(cases) if not case.passes]
    # The parts that fit, from the first one on, and then the sentence on the others.
    ends = list(accumulate(len(text.encode()) for _, text in parts))
    if ends[-1] <= limit:
        return "".join(text for _, text in parts)
    room = limit - len(_left_out(len(cases), len(cases)).encode())
    kept = sum(end <= room for end in ends)
    cut = {number for number, _ in parts[kept:] if number is not None}
    return "".join(text for _, text in parts[:kept]) + _left_out(len(cut), len(cases))


def _head(report: Report) -> str:
    totals = ", ".join(
        f"{number} {words(Outcome(name))}" for name, number in report.summary.items()
    )
    found = report.environment
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return (
        f"## Parity of flax.optim and optax\n\n{totals}\n\n"
        f"{found.device_count} × {_cell(found.device_kind)} ({found.platform}); "
        f"{versions}; seed {found.seed}\n\n"
        "| | Case | Verdict | Error over movement | float32 drift | Steps |\n"
        "|---|---|---|---|---|---|\n"
    )


def _row(case: Case) -> str:
    found = case.comparison
    figures = ("", "", "")
    if found is not None:
        drift = "" if found.drift is None else f"{found.drift:.1e}"
        figures = (f"{found.error:.1e}{gate(found)}", drift, str(found.steps))
    cells = (SIGNS[case.outcome], _cell(case.name), words(case.outcome), *figures)
    return f"| {' | '.join(cells)} |\n"


def _details(case: Case) -> str:
    difference = case.comparison and case.comparison.first_difference
    # The remarks of a case that ran include its reason.
    reason = case.reason if case.comparison is None else "\n".join(case.remarks)
    parts = [
        f"First at {_cell(place(difference))}.\n" if difference else "",
        f"{_block(reason)}\n" if reason else "",
        f"Before:\n\n{_block(case.before, 'python')}\n" if case.before else "",
        f"After:\n\n{_block(case.after, 'python')}\n" if case.after else "",
        f"To repeat it:\n\n{_block(case.reproduction, 'python')}\n" if case.reproduction else "",
    ]
    body = "\n".join(part for part in parts if part)
    summary = f"{_escaped(case.name)}: {words(case.outcome)}"
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>\n\n"


def _cell(text: str) -> str:
    """Text that means nothing to Markdown, in one line."""
    return re.sub(r"[\\`*_{}\[\]|#~]", r"\\\g<0>", _escaped(text))


def _escaped(text: str) -> str:
    """Text that means nothing to HTML, in one line; in a summary, Markdown means nothing either."""
    return html.escape(" ".join(text.split()), quote=False)


def _block(text: str, language: str = "text") -> str:
    """A block of code, in a fence longer than any in it."""
    fence = "```"
    # A source text may have a docstring with a fence in it.
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _left_out(number: int, total: int) -> str:
    return (
        f"\nFor length, more are left out here: {number} of {total} cases, in whole or in part.\n"
    )
