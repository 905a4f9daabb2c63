"""The report for a pull request or the summary of a CI run."""

from __future__ import annotations

from optim2optax.parity.judging.comparison import Verdict, place
from optim2optax.parity.reports.result import Case, Report
from optim2optax.wording import escaped, markdown_cell

SIGNS = {
    Verdict.IDENTICAL: "✅",
    Verdict.EQUIVALENT: "✅",
    Verdict.DIFFERENT: "❌",
    Verdict.COULD_NOT_RUN: "⚠️",
    Verdict.NOTHING_PROVEN: "⚠️",
}


def render_markdown(report: Report) -> str:
    """A table of all cases, those that do not pass first, and a section for each of these."""
    failing = [case for case in report.cases if not case.passes]
    parts = [_head(report), *map(_row, report.cases), "\n", *map(_details, failing)]
    return "".join(parts)


def _head(report: Report) -> str:
    found = report.environment
    devices = (
        f"{found.device_count} × {markdown_cell(found.device_kind)} ({found.platform})"
    )
    return (
        "## Parity of flax.optim and optax\n\n"
        f"{report.totals}\n\n"
        f"{devices}; {found.named_versions}; seed {found.seed}\n\n"
        "| | Case | Verdict | Error over movement | float32 drift | Steps |\n"
        "|---|---|---|---|---|---|\n"
    )


def _row(case: Case) -> str:
    sign = SIGNS[case.outcome]
    cells = (sign, markdown_cell(case.name), case.outcome.words, *case.cells)
    return f"| {' | '.join(cells)} |\n"


def _details(case: Case) -> str:
    difference = case.comparison and case.comparison.first_difference
    reason = "\n".join(case.remarks)
    parts: list[str] = []
    if difference:
        text = place(difference)
        parts.append(f"{markdown_cell(text[0].upper() + text[1:])}.\n")
    if reason:
        parts.append(f"{_block(reason)}\n")
    sources = (
        ("Before", case.before, "python"),
        ("After", case.after, "python"),
        ("To repeat it", case.reproduction, "shell"),
    )
    for title, source, language in sources:
        if source:
            parts.append(f"{title}:\n\n{_block(source, language)}\n")
    body = "\n".join(parts)
    summary = f"{escaped(case.name)}: {case.outcome.words}"
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>\n\n"


def _block(text: str, language: str = "text") -> str:
    """A block of code, in a fence longer than any in it."""
    fence = "```"
    # A source text may have a docstring with a fence in it.
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
