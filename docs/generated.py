"""The pages of rules, optimizers and fixtures, written from what the program itself knows of them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from codemods.optimizers import optimizers
from codemods.optimizers.base import LegacyOptimizer
from codemods.rules import Rule, catalogue

FAMILIES = {
    "FO1": "Definitions",
    "FO2": "The optimizer object",
    "FO3": "Several optimizers, traversals",
    "FO4": "Learning rates and schedules",
    "FO5": "Gradients",
    "FO6": "Checkpoints and replication",
    "FO7": "Custom optimizers",
    "FO8": "Parameters, states, what else was removed, and what is installed",
    "FO9": "What is left, and why",
}
ROW = re.compile(r"^\| (?!---)(.*) \|$", re.MULTILINE)


def write_pages(docs: Path) -> None:
    """Write `rules/`, `optimizers/` and `examples/` into the folder of the documentation."""
    pages = (
        dict(_rule_pages())
        | dict(_optimizer_pages(docs))
        | dict(_example_pages(docs.parent / "fixtures"))
    )
    for name, text in pages.items():
        path = docs / name
        path.parent.mkdir(exist_ok=True)
        if (
            not path.exists() or path.read_text(encoding="utf-8") != text
        ):  # else all would be built anew
            path.write_text(text, encoding="utf-8")


def _rule_pages() -> Iterator[tuple[str, str]]:
    index = [
        "# Rules",
        "",
        "`optim2optax explain CODE` shows the same, and `optim2optax rules` lists them.",
    ]
    for family, rules in groupby(catalogue().values(), key=lambda rule: rule.code[:3]):
        found = list(rules)
        index += ["", f"## {FAMILIES[family]}", "", "| code | |", "|---|---|"]
        index += [
            f"| [{rule.code}]({rule.code}.md) | {rule.summary} |" for rule in found
        ]
        index += ["", *_toctree([rule.code for rule in found])]
    yield "rules/index.md", "\n".join(index) + "\n"
    for rule in catalogue().values():
        yield f"rules/{rule.code}.md", _rule_page(rule)


def _rule_page(rule: Rule) -> str:
    parts = [f"# {rule.code}: {rule.summary}", rule.explanation]
    for title, program in (("Before", rule.before), ("After", rule.after)):
        if program:
            parts += [f"{title}:", f"```python\n{program.strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def _optimizer_pages(docs: Path) -> Iterator[tuple[str, str]]:
    measured = [
        row.split(" | ")
        for row in ROW.findall((docs / "cost.md").read_text(encoding="utf-8"))[1:]
    ]
    proven = [
        row.split(" | ")
        for row in ROW.findall((docs / "parity.md").read_text(encoding="utf-8"))[1:]
    ]
    index = [
        "# Optimizers",
        "",
        "Each page shows a legacy optimizer and what it becomes. The table has the verdicts in [the parity report](../parity.md), and the",
        "time of a new step divided by that of an old one ([what a step costs](../cost.md)).",
        "",
        "| legacy | proven | step |",
        "|---|---|---|",
    ]
    for name, optimizer in optimizers().items():
        cases = [case for case in proven if case[1].endswith(f" {name}")]
        costs = [row for row in measured if row[0].startswith(f"`optim.{name}(")]
        times = sorted(row[2] for row in costs)
        ends = " – ".join(dict.fromkeys([*times[:1], *times[-1:]]))
        index.append(f"| [{name}]({name}.md) | {_counted(cases)} | {ends} |")
        yield f"optimizers/{name}.md", _optimizer_page(optimizer, cases, costs)
    yield (
        "optimizers/index.md",
        "\n".join([*index, "", *_toctree(list(optimizers()))]) + "\n",
    )


def _optimizer_page(
    optimizer: LegacyOptimizer, cases: list[list[str]], costs: list[list[str]]
) -> str:
    words = [
        parameter.name
        if parameter.default is None
        else f"{parameter.name}={parameter.default}"
        for parameter in optimizer.parameters
    ]
    return "\n".join(
        [
            f"# {optimizer.name}",
            "",
            *(_strong(line) for line in optimizer.documentation.splitlines()),
            "",
            "## What it was",
            "",
            "```python",
            f"optim.{optimizer.name}({', '.join(words)})",
            "```",
            "",
            "## What it becomes",
            "",
            "The last two columns are the times for a step and for compiling it, divided by those of the old optimizer.",
            "",
            "| legacy | now | step | compiling |",
            "|---|---|---|---|",
            *(f"| {' | '.join(row)} |" for row in costs),
            "",
            *_proven(cases),
            "",
            "## Its state",
            "",
            *_state(optimizer),
        ]
    )


def _proven(cases: list[list[str]]) -> list[str]:
    """What the parity report has of an optimizer, if a fixture uses it."""
    if not cases:
        return ["No program in [the parity report](../parity.md) uses it."]
    largest = max(float(case[3]) for case in cases)
    return [
        f"Proven: {_counted(cases)} in [the parity report](../parity.md). The largest error over movement in float64 is",
        f"{largest:.1e}.",
    ]


def _state(optimizer: LegacyOptimizer) -> list[str]:
    if not optimizer.state:
        return ["It keeps nothing for a parameter.", ""]
    return [
        "It keeps these values for each parameter; see [Checkpoints](../checkpoints.md).",
        "",
        "| legacy | optax |",
        "|---|---|",
        *(f"| `{old}` | `{new}` |" for old, new in optimizer.state.items()),
        "",
    ]


def _example_pages(fixtures: Path) -> Iterator[tuple[str, str]]:
    index = [
        "# Examples",
        "",
        "Complete small programs, before and after, each proven in [the parity report](../parity.md).",
        "",
    ]
    cases = sorted(before.parent for before in fixtures.glob("*/before.py"))
    for case in cases:
        summary = (
            ast.get_docstring(ast.parse((case / "before.py").read_bytes())) or ""
        ).partition("\n")[0]
        index.append(f"- [{case.name}]({case.name}.md): {summary}")
        parts = [f"# {case.name}", summary]
        for title, name in (
            ("Before", "before.py"),
            ("After", "after.py"),
            ("After, with `--style functional`", "after_functional.py"),
        ):
            if (case / name).exists():
                code = (case / name).read_text(encoding="utf-8").strip()
                parts += [f"{title}:", f"```python\n{code}\n```"]
        yield f"examples/{case.name}.md", "\n\n".join(parts) + "\n"
    yield (
        "examples/index.md",
        "\n".join([*index, "", *_toctree([case.name for case in cases])]) + "\n",
    )


def _strong(line: str) -> str:
    """A line of a documentation, with the side that it is about in bold."""
    return re.sub(r"^(Legacy|optax):", r"**\1:**", line)


def _counted(cases: list[list[str]]) -> str:
    """How often there was each verdict."""
    return ", ".join(
        f"{verdict} in {count}"
        for verdict, count in sorted(Counter(case[2] for case in cases).items())
    )


def _toctree(names: list[str]) -> list[str]:
    return ["```{toctree}", ":hidden:", "", *names, "```"]
