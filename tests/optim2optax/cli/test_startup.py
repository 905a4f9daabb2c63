"""A run imports what it needs and no more: a hook that finds nothing must be fast."""

import os
from pathlib import Path

import pytest

from codemods.vocabulary import words
from tests.optim2optax.processes import run_python
from tests.optim2optax.programs import LEGACY, MODERN

HEAVY = words(
    "libcst jax flax optax numpy codemods.engine codemods.rules "
    "optim2optax.parity jinja2 optim2optax.reporting.html"
)


def imported(project: Path, *arguments: str) -> set[str]:
    """The heavy modules that a run imports."""
    program = (
        "import sys\n"
        "from optim2optax.cli import application\n"
        "application(sys.argv[1:], standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = run_python("-c", program, *arguments, cwd=project)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split()) & set(HEAVY)


OPTIONS = ["", "--check", "--diff --partial", "--output-format json", "--verbose"]


@pytest.mark.parametrize("options", OPTIONS)
def test_nothing_to_migrate(project: Path, options: str) -> None:
    (project / "train.py").write_text(MODERN)
    (project / "pyproject.toml").write_text("[tool.optim2optax]\nform = 'chain'\n")
    assert imported(project, "rewrite", *options.split(), ".") == set()


@pytest.mark.parametrize("arguments", ["--help", "--version", "rewrite --help"])
def test_help(project: Path, arguments: str) -> None:
    assert imported(project, *arguments.split()) == set()


def test_the_functions_for_other_programs() -> None:
    program = f"import sys, optim2optax; optim2optax.rewrite('import optax'); print(*{{*sys.modules}} & {{*{HEAVY}}})"
    assert run_python("-c", program).stdout == "\n"


def test_something_to_migrate_needs_no_jax(project: Path) -> None:
    (project / "train.py").write_text(LEGACY)
    found = {"libcst", "codemods.engine", "codemods.rules"}
    assert imported(project, "rewrite", ".") == found


def test_takes_no_longer_than_its_libraries(project: Path) -> None:
    """Twice the processor time of an import of its libraries, with a margin: the least of a few runs."""
    (project / "train.py").write_text(MODERN)

    def least(*words: str) -> float:
        times = []
        for _ in range(5):
            before = os.times()
            assert run_python(*words, cwd=project).returncode == 0
            after = os.times()
            times.append(after.children_user - before.children_user)
        return min(times)

    libraries = least("-c", "import click, pathspec")
    assert least("-m", "optim2optax", "rewrite", ".") < 2 * libraries + 0.1
