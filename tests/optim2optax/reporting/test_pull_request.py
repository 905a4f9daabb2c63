"""The text of a pull request: what a reviewer reads first."""

import re
from pathlib import Path

import pytest

from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import LEGACY

TYPED = """\
from flax import optim


def create(params):
    return optim.Adam(learning_rate=0.1).create(params)


def describe(optimizer: optim.Optimizer):
    return type(optimizer).__name__


def train(params):
    print(describe(create(params)))
"""
TABLES = """\
from flax import optim

RATES = {"a|b": 0.1}


def create(params):
    definition = optim.GradientDescent(
        learning_rate=RATES["a|b"],  # by name
    )
    return definition.create(params)
"""


def text_of(run: Run, project: Path, *words: str) -> str:
    run("rewrite", "--markdown", "pr.md", *words, ".")
    return (project / "pr.md").read_text()


def sections(text: str) -> list[str]:
    return re.findall(r"^### (.*)", text, re.MULTILINE)


def test_without_an_optimizer_there_is_little_to_say(project: Path, run: Run) -> None:
    (project / "train.py").write_text("import jax\n")
    text = text_of(run, project)
    assert sections(text) == []
    assert "0 places rewritten, 0 files changed, +0 −0 lines" in text


def test_what_changes_and_what_stays(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    (project / "typed.py").write_text(TYPED)
    text = text_of(run, project)
    assert sections(text) == ["Optimizers", "What stays", "Proof", "Checkpoints"]
    diff = run("rewrite", "--diff", ".").stdout
    assert diff == ""  # all that can be done was written
    assert (
        "| train.py:6 | `optim.Momentum(learning_rate=0.1, beta=0.9)` "
        "| `optax.sgd(learning_rate=0.1, momentum=0.9)` |" in text
    )
    assert "- FO924 typed.py:9: " in text
    assert "  *What to do:* " in text
    assert "typed.py:5 |" not in text
    assert "optim2optax parity --before" in text
    assert "optim2optax checkpoint convert" in text


def test_lines_are_those_of_the_diff(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    diff = run("rewrite", "--diff", ".").stdout
    signs = [line[0] for line in diff.splitlines() if line[:3] not in ("---", "+++")]
    added, removed = signs.count("+"), signs.count("-")
    text = text_of(run, project, "--check")
    assert f"1 file changed, +{added} −{removed} lines" in text
    assert (project / "train.py").read_text() == LEGACY


def test_code_cannot_break_a_table(project: Path, run: Run) -> None:
    (project / "train.py").write_text(TABLES)
    [row] = [line for line in text_of(run, project).splitlines() if "train.py" in line]
    assert len(re.split(r"(?<!\\)\|", row)) == 5


def test_where_an_optimizer_goes_out_of_view(project: Path, run: Run) -> None:
    save = "\n\ndef save(store, params):\n    store.put(create_optimizer(params))\n"
    (project / "train.py").write_text(LEGACY + save)
    text = text_of(run, project)
    assert "### To look at" in text
    assert re.search(r"- FO932 train.py:\d+: .*`store.put`", text)


def test_a_row_for_each_repository(project: Path, run: Run) -> None:
    for name in ("actor", "critic"):
        (project / name / ".git").mkdir(parents=True)
        (project / name / "train.py").write_text(LEGACY)
    text = text_of(run, project)
    assert "| actor | 1 | 1 | 1 of 1 | 5 of 5 | 0 |" in text


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.usefixtures("judged")
def test_the_figures_of_parity(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    text = text_of(run, project, "--verify")
    row = r"\| train.py:6 Momentum \| \w+ \| 120 \| \d\.\de[+-]\d\d \|"
    assert re.search(row, text)
    assert "--before" not in text


def test_without_a_folder(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LEGACY)
    result = run("rewrite", "--markdown", "none/pr.md", ".")
    assert result.exit_code == 2
    assert "--markdown: there is no folder none" in result.stderr
    assert (project / "train.py").read_text() == LEGACY
