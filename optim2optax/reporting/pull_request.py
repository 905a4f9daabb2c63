"""The text of a pull request: what changed, what stays, what was proven, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.model import EmittedOptimizer
from optim2optax.reporting.causes import ESCAPE, NOTE, Entry, entries, hinted
from optim2optax.reporting.diff import changed_lines
from optim2optax.reporting.numbers import repository_rows
from optim2optax.reporting.report import Report
from optim2optax.templates import rendered
from optim2optax.wording import counted, markdown_cell

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case

Proofs = Mapping[EmittedOptimizer, "Case"]


def render_pull_request(report: Report, proofs: Proofs) -> str:
    """The description of a change, in Markdown.

    Args:
      report: the results.
      proofs: the cases of parity, by the optimizers that were proven; none without `--verify`.
    """
    found = [*entries(report)]
    notes = [one for one in found if one.reason.code == NOTE]
    return rendered(
        Path(__file__).with_name("pull_request.md.j2"),
        {"places": _places},
        report=report,
        verdict=_verdict(report),
        optimizers=[*_optimizers(report)],
        repositories=repository_rows(report.repositories),
        left=[one for one in found if one.reason.code != NOTE],
        to_look_at=[*hinted(report, ESCAPE), *notes],
        is_tried=bool(proofs),
        proofs=[*_proofs(report, proofs)],
    )


def _verdict(report: Report) -> str:
    summary = report.summary
    added, removed = changed_lines(*report.changed)
    left = summary["sites"] - summary["rewritten"]
    sites = counted(summary["sites"], "place")
    done = f"{sites} rewritten" if not left else f"{left:,} of {sites} stay"
    files = counted(summary["files_changed"], "file")
    return f"{done}, {files} changed, +{added:,} −{removed:,} lines."


def _optimizers(report: Report) -> Iterator[tuple[str, str, str]]:
    for result in report.results:
        for one in result.optimizers:
            before, after = _code(one.legacy_expression), _code(one.optax_expression)
            yield f"{result.path}:{one.line}", before, after


def _code(text: str) -> str:
    """Code in one line of a table."""
    line = " ".join(text.split()).replace("|", r"\|")
    return f"`` {line} ``" if "`" in line else f"`{line}`"


def _places(entry: Entry) -> str:
    places = (f"{path}:{site.line}" for path, site in entry.sites)
    return ", ".join(dict.fromkeys(places))


def _proofs(report: Report, proofs: Proofs) -> Iterator[tuple[str, str, int, str]]:
    for result in report.results:
        for one in result.optimizers:
            case = proofs.get(one)
            if case is not None and case.comparison is not None:
                place = f"{result.path}:{one.line} {markdown_cell(one.name)}"
                error = f"{case.comparison.error:.1e}"
                yield place, case.outcome.words, case.comparison.steps, error
