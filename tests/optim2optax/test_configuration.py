"""`[tool.optim2optax]`: a mistake is named by file and key and ends the run with 2; the command line wins."""

from pathlib import Path

import pytest

from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import LEGACY


def configure(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.optim2optax]\n{text}\n")
    (project / "train.py").write_text(LEGACY)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("colour = true", "tool.optim2optax.colour: unknown key; there are select, "),
        ("output_format = 'json'", "tool.optim2optax.output_format: unknown key"),
        ("diff = true", "tool.optim2optax.diff: unknown key"),
        ("select = 'FO1'", "tool.optim2optax.select: must be a list, not 'FO1'"),
        ("ignore = [1]", "tool.optim2optax.ignore: no rule has the code 1"),
        ("form = 'sgd'", "tool.optim2optax.form: 'sgd' is not one of 'alias', 'chain'"),
        ("partial = 1", "tool.optim2optax.partial: must be true or false, not 1"),
        ("unsafe = 'yes'", "tool.optim2optax.unsafe: must be true or false"),
        ("jobs = 0", "tool.optim2optax.jobs: 0 is not in the range x>=1"),
        ("jobs = true", "tool.optim2optax.jobs: must be"),
        ("select = ['FO999']", "tool.optim2optax.select: no rule has the code FO999"),
        ("exclude = ['!']", "tool.optim2optax.exclude: "),
        ("form = ", "pyproject.toml: "),
    ],
)  # fmt: skip
def test_mistakes(project: Path, run: Run, text: str, complaint: str) -> None:
    configure(project, text)
    result = run("rewrite", "train.py")
    assert result.exit_code == 2
    assert "pyproject.toml" in result.stderr
    assert complaint in result.stderr
    assert (project / "train.py").read_text() == LEGACY


def test_a_table_that_is_none(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text("[tool]\noptim2optax = 1\n")
    (project / "train.py").write_text(LEGACY)
    result = run("rewrite", "train.py")
    assert result.exit_code == 2
    assert result.stderr.endswith("pyproject.toml: tool.optim2optax: must be a table\n")
    assert (project / "train.py").read_text() == LEGACY


def test_options_are_read_and_the_command_line_wins(project: Path, run: Run) -> None:
    configure(project, 'form = "chain"\noutput-format = "json"\njobs = 1')
    assert run("rewrite", "--check", ".").stdout.startswith("{")
    words = ("rewrite", "--output-format", "text", ".")
    assert run(*words, "--check").stdout.endswith("0 unresolved\n")
    assert "optax.chain" in run(*words, "--diff").stdout
    assert "optax.sgd" in run(*words, "--diff", "--form", "alias").stdout


def test_a_switch_can_be_turned_off(project: Path, run: Run) -> None:
    configure(project, "unsafe = true")
    likely = "\n\ndef parameters(my_opt):\n    return my_opt.target\n"
    (project / "train.py").write_text(LEGACY + likely)
    line = "+    return my_opt.params\n"
    assert line in run("rewrite", "--diff", ".").stdout
    assert line not in run("rewrite", "--diff", "--no-unsafe", ".").stdout


def test_patterns_are_relative_to_their_file(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(project, 'exclude = ["/train.py"]')
    (project / "src").mkdir()
    (project / "src" / "train.py").write_text(LEGACY)
    monkeypatch.chdir(project / "src")
    assert run("rewrite", "--diff", "..").stdout.startswith("--- a/train.py\n")
    told = run("rewrite", "--diff", "--exclude", "/train.py", "..").stdout
    assert told.startswith("--- a/../train.py\n")


def test_the_nearest_table_holds(project: Path, run: Run) -> None:
    """Of the folder that holds all the paths; a pyproject.toml without the table does not count."""
    configure(project, 'output-format = "json"')
    for name in ("inner", "other"):
        (project / name).mkdir()
        (project / name / "pyproject.toml").write_text("[project]\nname = 'inner'\n")
        (project / name / "train.py").write_text(LEGACY)
    table = "[tool.optim2optax]\noutput-format = 'github'\n"
    (project / "other/pyproject.toml").write_text(table)
    assert run("rewrite", "--check", "inner").stdout.startswith("{")
    assert run("rewrite", "--check", "other/train.py").stdout.startswith("::notice")
    assert run("rewrite", "--check", "other", "inner").stdout.startswith("{")
    words = ("rewrite", "--check", "-", "--stdin-filename", "other/x.py")
    assert run(*words, stdin=LEGACY.encode()).stdout.startswith("::")
