"""What `optim2optax rewrite` prints at a terminal, in a pipe, and with `--verbose`."""

import re
from pathlib import Path

import pytest

from tests.optim2optax.cli.terminal import at_terminal
from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import LEGACY, MODERN, UNPARSABLE, UNRESOLVABLE

CODE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def mixed(project: Path) -> Path:
    (project / "train.py").write_text(LEGACY)
    (project / "describe.py").write_text(UNRESOLVABLE)
    return project


@pytest.mark.parametrize("command", ["rewrite --check .", "explain FO202", "rules"])
@pytest.mark.parametrize(
    ("environment", "has_colour"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colour(
    mixed: Path, command: str, environment: dict[str, str], has_colour: bool
) -> None:
    session = at_terminal(mixed, *command.split(), environment=environment)
    assert (CODE.search(session.shown) is not None) == has_colour


def test_verbose(mixed: Path, run: Run) -> None:
    for folder in ("build", "old", "generated"):
        (mixed / folder).mkdir()
        (mixed / folder / "train.py").write_text(LEGACY)
    (mixed / "modern.py").write_text(MODERN)
    (mixed / "broken.py").write_text(UNPARSABLE)
    (mixed / ".git").mkdir()
    (mixed / ".gitignore").write_text("generated/\n")
    result = run("rewrite", "--check", "--verbose", "--exclude", "old", ".")
    assert result.stderr.splitlines() == [
        "build: left out: folders of this name hold no code of the project itself",
        "generated: left out by .gitignore",
        "old: left out by --exclude or `exclude`",
        "broken.py: error",
        "describe.py: analysed, 3 sites",
        "modern.py: not analysed: no optimizer gets there",
        "train.py: analysed, 5 sites",
    ]


NEAREST = {
    "rewrite --modernise .": "--modernize",
    "rewrit .": "No such command 'rewrit'; did you mean rewrite?",
    "rewrite --select FO2022 .": "did you mean FO202 or",
    "rewrite --ignore F0202 .": "FO202",
    "explain Adamm": "did you mean Adam",
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("command", "nearest"), NEAREST.items(), ids=NEAREST)
def test_the_nearest_word(run: Run, command: str, nearest: str) -> None:
    result = run(*command.split())
    assert result.exit_code == 2
    assert nearest in result.stderr


def test_the_nearest_key(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text("[tool.optim2optax]\nmodernise = true\n")
    told = "tool.optim2optax.modernise: unknown key; did you mean modernize?"
    assert told in run("rewrite", ".").stderr
    (project / "pyproject.toml").write_text("[tool.optim2optax]\nzzz = true\n")
    assert "unknown key; there are select, ignore, " in run("rewrite", ".").stderr
