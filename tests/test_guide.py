"""docs/guide: each program there is rewritten, and trained before and after. As a script, this writes the results anew."""

import ast
import re
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import jax
import numpy as np
import pytest

from codemods import FileResult, Options, Source, migrate
from optim2optax.legacy import legacy_flax, load_module
from optim2optax.parity.judging.comparison import REPLAY_GATE, Comparison
from optim2optax.parity.judging.judge import compare_trajectories
from optim2optax.parity.scenario.states import parameters
from optim2optax.precision import precise
from optim2optax.reporting.report import Report
from optim2optax.reporting.text import render

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "guide"
PAGES = [GUIDE / f"{name}.md" for name in ("flax-guide", "training", "remedies")]
TABLE = "<!-- by hand -->\n\n| by hand | error over movement |\n|---|---|\n"
BLOCK = re.compile(
    r"^(?P<head>(?P<kind>Before|After|Report|Edited|Partly|By hand)(?P<how>[^\n]*):\n\n```\w+\n)(?P<text>.*?)(?P<tail>^```\n)"
    r"(?:\nParity: [^\n]*\n)?",
    re.MULTILINE | re.DOTALL,
)
PARITY = re.compile(
    r"^Parity: \*\*(\w+)\*\*.*? error over movement ([\d.e+-]+|inf)", re.MULTILINE
)
OPTIONS = {
    "": Options(),
    ", with `--form chain`": Options(form="chain"),
    ", with `--style functional`": Options(style="functional"),
}
STEPS = 50


class Section:
    """What the blocks of one example build on: the legacy program, what is rewritten of it, and what came of that."""

    def __init__(self, before: str, folder: Path) -> None:
        self.before = self.source = self.after = before
        self.folder = folder
        self.trajectory = _train(folder, before, legacy=True)

    def follow(self, block: re.Match[str]) -> str:
        """A block behind the first, with its text and verdict as they are now."""
        kind, text = block["kind"], block["text"]
        if kind == "Report":
            result = _rewritten(self.source, Options(ignore=("FO706",)))
            return block["head"] + _reasons(result) + block["tail"]
        if kind == "Partly":
            partly = Options(partial=True, ignore=("FO706",))
            self.after = _rewritten(self.source, partly).after.decode()
            return block["head"] + self.after + block["tail"]
        if kind == "After":
            result = _rewritten(self.source, OPTIONS[block["how"]])
            text = self.after = _complete(result)
        elif kind == "Edited":
            self.source = with_definitions(self.before, text)
            self.after = _complete(_rewritten(self.source))
        else:
            return f"{block['head']}{text}{block['tail']}\n{self._verdict(with_definitions(self.after, text))}"
        return f"{block['head']}{text}{block['tail']}\n{self._verdict(self.after)}"

    def _verdict(self, program: str) -> str:
        after = _train(self.folder, program, legacy=False)
        found = compare_trajectories(self.trajectory, after, closed_loop=True)
        return f"Parity: **{found.verdict.value}**{_start(found)}, error over movement {found.error:.1e} in {STEPS} steps.\n"


def with_results(page: str) -> str:
    """A page with the rewritten programs, reports and verdicts that its own programs have now."""
    with TemporaryDirectory() as folder:
        section: Section

        def anew(block: re.Match[str]) -> str:
            nonlocal section
            if block["kind"] == "Before":
                section = Section(block["text"], Path(folder))
                return block[0]
            return section.follow(block)

        return BLOCK.sub(anew, page)


def with_definitions(program: str, definitions: str) -> str:
    """A program in which some functions and variables are others. What is new stands ahead of the next that is not.

    Definitions with imports are a whole program.
    """
    if definitions.startswith(("import", "from")):
        return definitions
    places = {name: node for node in ast.parse(program).body for name in _names(node)}
    lines, edits, new = program.splitlines(keepends=True), [], ""
    for node in ast.parse(definitions).body:
        whole = definitions.splitlines(keepends=True)
        new += "".join(whole[_first(node) : node.end_lineno])
        if old := next((places[name] for name in _names(node) if name in places), None):
            edits.append((_first(old), old.end_lineno, new))
            new = ""
    assert not new, "nothing of the program is another"
    for start, end, text in sorted(edits, reverse=True):
        lines[start:end] = [text]
    return "".join(lines)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets]
    return [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []


def _first(node: ast.stmt) -> int:
    """The index of its first line, that of a decorator if it has one."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)]) - 1


def summary() -> str:
    """A table of what is written by hand and differs."""
    rows = []
    for page in PAGES:
        for block in BLOCK.finditer(page.read_text()):
            found = PARITY.search(block[0])
            if found is not None and found[1] == "different":
                how = block["how"].removeprefix(", ")
                rows.append(f"| [{how}]({page.name}) | {found[2]} |\n")
    return TABLE + "".join(rows)


def _rewritten(program: str, options: Options | None = None) -> FileResult:
    [result] = migrate([Source("train.py", program.encode())], options)
    assert result.error is None
    return result


def _complete(result: FileResult) -> str:
    assert {site.status for site in result.sites} == {"rewritten"}, result.sites
    return result.after.decode()


def _reasons(result: FileResult) -> str:
    """What the report says of the sites that stand in the way, without those that only share an optimizer with them."""
    lines = click.unstyle(render(Report([result]))).splitlines()
    cause = re.compile(r" FO9(?!01|11)\d\d ")
    causes = [number for number, line in enumerate(lines) if cause.search(line)]
    assert causes
    told = (line for number in causes for line in lines[number : number + 2])
    return "".join(f"{line}\n" for line in told)


def _train(folder: Path, program: str, legacy: bool) -> list[Any]:
    """What a program yields after each step, in float64."""
    path = folder / "train.py"
    path.write_text(program)
    rng = np.random.default_rng(0)
    params = {
        "dense": {"kernel": rng.normal(size=(3, 2)), "bias": rng.normal(size=2)},
        "norm": {"scale": rng.normal(size=3)},
    }
    batches = [
        {"x": rng.normal(size=(8, 3)), "y": rng.normal(size=(8, 2))}
        for _ in range(STEPS)
    ]
    with legacy_flax() if legacy else nullcontext(), precise():
        states = load_module(path, "train", legacy).train(params, batches)
        return [jax.tree_util.tree_map(np.array, parameters(one)) for one in states]


def _start(found: Comparison) -> str:
    first = found.first_difference
    return "" if first is None else f" from step {first.step + 1} on"


def _without_rounding(page: str) -> str:
    """A page in which figures below the gate, which are rounding, are all alike."""

    def alike(match: re.Match[str]) -> str:
        is_same = match[1] != "different" and float(match[2]) < REPLAY_GATE
        return "Parity: the same function" if is_same else match[0]

    return PARITY.sub(alike, page)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_results_are_real(path: Path, legacy_wheel: Path) -> None:
    page = path.read_text()

    assert _without_rounding(with_results(page)) == _without_rounding(page)


def test_the_summary_is_up_to_date() -> None:
    assert (GUIDE / "index.md").read_text().endswith(summary())


def test_only_what_is_written_by_hand_differs() -> None:
    for path in PAGES:
        for block in BLOCK.finditer(path.read_text()):
            found = PARITY.search(block[0])
            is_judged = block["kind"] in ("After", "Edited", "By hand")
            assert (found is not None) == is_judged
            if found is not None and block["kind"] != "By hand":
                assert found[1] in ("identical", "equivalent")
                assert float(found[2]) < REPLAY_GATE


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_results(page.read_text()))
    index = (GUIDE / "index.md").read_text()
    (GUIDE / "index.md").write_text(index.partition("<!-- by hand -->")[0] + summary())
