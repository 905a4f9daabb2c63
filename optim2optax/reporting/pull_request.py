"""The text of a pull request: what changed, what stays, what was proven, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from codemods.model import EmittedOptimizer
from optim2optax.reporting.causes import NOTE, Entry, entries, escapes
from optim2optax.reporting.diff import changed_lines
from optim2optax.reporting.numbers import repository_rows
from optim2optax.reporting.report import Report
from optim2optax.wording import counted, markdown_cell

if TYPE_CHECKING:
    from optim2optax.parity.reports.result import Case

Proofs = Mapping[EmittedOptimizer, "Case"]

CHECKPOINTS = """\
The new state has other keys, so that checkpoints of the old code have to be converted once:

```
optim2optax checkpoint convert OLD NEW --state MODULE:FUNCTION
```

`FUNCTION` takes no arguments, and returns the state that the new program begins with."""

NO_PROOF = """\
Not tried yet. This runs the old code and the new side by side, with the same gradients:

```
optim2optax parity --before REVISION .
```"""


def render_pull_request(report: Report, proofs: Proofs) -> str:
    """The description of a change, in Markdown.

    Args:
      report: the results.
      proofs: the cases of parity, by the optimizers that were proven; none without `--verify`.
    """
    return "\n".join(_lines(report, proofs)) + "\n"


def _lines(report: Report, proofs: Proofs) -> Iterator[str]:
    yield "## Move from flax.optim to optax"
    yield ""
    yield _verdict(report)
    optimizers = [
        (result.path, emitted)
        for result in report.results
        for emitted in result.optimizers
    ]
    if optimizers:
        yield from _title("Optimizers")
        yield from _table(
            ("", "Before", "After"),
            [
                (
                    f"{path}:{one.line}",
                    _code(one.legacy_expression),
                    _code(one.optax_expression),
                )
                for path, one in optimizers
            ],
        )
    if len(report.repositories) > 1:
        yield from _title("Repositories")
        yield from _table(*repository_rows(report.repositories))
    found = [*entries(report, told_elsewhere="")]
    yield from _listed("What stays", [one for one in found if one.reason.code != NOTE])
    notes = [one for one in found if one.reason.code == NOTE]
    yield from _listed("To look at", [*escapes(report), *notes])
    if optimizers:
        yield from _title("Proof")
        yield from _proof(optimizers, proofs)
        yield from _title("Checkpoints")
        yield CHECKPOINTS


def _verdict(report: Report) -> str:
    summary = report.summary
    added, removed = changed_lines(*report.changed)
    left = summary["sites"] - summary["rewritten"]
    sites = counted(summary["sites"], "place")
    done = f"{sites} rewritten" if not left else f"{left:,} of {sites} stay"
    files = counted(summary["files_changed"], "file")
    return (
        "Flax removed `flax.optim` in 2022; this moves its optimizers to optax. "
        f"{done}, {files} changed, +{added:,} −{removed:,} lines."
    )


def _title(text: str) -> Iterator[str]:
    yield from ("", f"### {text}", "")


def _table(title: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(title)} |"
    yield f"|{'---|' * len(title)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _code(text: str) -> str:
    """Code in one line of a table."""
    line = " ".join(text.split()).replace("|", r"\|")
    return f"`` {line} ``" if "`" in line else f"`{line}`"


def _listed(title: str, found: Sequence[Entry]) -> Iterator[str]:
    """A point for each reason, with its places."""
    if found:
        yield from _title(title)
    for entry in found:
        places = [f"{path}:{site.line}" for path, site in entry.sites]
        code = "" if entry.reason.code == NOTE else f"{entry.reason.code} "
        yield f"- {code}{', '.join(dict.fromkeys(places))}: {entry.reason.message}"
        if entry.reason.remedy:
            yield f"  *What to do:* {entry.reason.remedy}"
        if entry.waiting:
            yield f"  {counted(len(entry.waiting), 'other use')} wait for this."


def _proof(
    optimizers: Sequence[tuple[str, EmittedOptimizer]], proofs: Proofs
) -> Iterator[str]:
    if not proofs:
        yield NO_PROOF
        return
    rows: list[Sequence[str]] = []
    for path, one in optimizers:
        case = proofs.get(one)
        if case is None or case.comparison is None:
            continue
        verdict = case.outcome.words
        figures = (str(case.comparison.steps), f"{case.comparison.error:.1e}")
        rows.append((f"{path}:{one.line} {markdown_cell(one.name)}", verdict, *figures))
    yield from _table(("Optimizer", "Verdict", "Steps", "Error over movement"), rows)
