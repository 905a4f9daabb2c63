"""A run imports what it needs and no more: a hook that finds nothing must be fast."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.optim2optax.programs import LEGACY, MODERN

HEAVY = (
    "libcst",
    "jax",
    "flax",
    "optax",
    "numpy",
    "codemods.engine",
    "codemods.rules",
    "optim2optax.parity",
    "jinja2",
    "optim2optax.reporting.html",
    "optim2optax.choosing",
    "optim2optax.reporting.terminal_links",
)


def imported(project: Path, *arguments: str) -> set[str]:
    """The heavy modules that a run imports."""
    program = (
        "import sys\n"
        "from optim2optax.cli import application\n"
        "application(sys.argv[1:], standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split()) & set(HEAVY)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--check",),
        ("--diff", "--partial"),
        ("--output-format", "json"),
        ("--markdown", "text.md", "--verbose"),
        ("--quiet",),
    ],
)
def test_nothing_to_migrate(project: Path, arguments: tuple[str, ...]) -> None:
    (project / "train.py").write_text(MODERN)
    (project / "pyproject.toml").write_text("[tool.optim2optax]\nform = 'chain'\n")
    assert imported(project, "rewrite", *arguments, ".") == set()


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("rewrite", "--help")]
)
def test_help(project: Path, arguments: tuple[str, ...]) -> None:
    assert imported(project, *arguments) == set()


def test_the_functions_for_other_programs() -> None:
    program = f"import sys, optim2optax; optim2optax.rewrite('import optax'); print(*{{*sys.modules}} & {{*{HEAVY}}})"
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        == "\n"
    )


def test_something_to_migrate_needs_no_jax(project: Path) -> None:
    (project / "train.py").write_text(LEGACY)
    assert imported(project, "rewrite", ".") == {
        "libcst",
        "codemods.engine",
        "codemods.rules",
    }


def test_takes_no_longer_than_its_libraries(project: Path) -> None:
    """Twice what importing its libraries takes, with a margin for a busy machine: the shortest of a few runs."""
    (project / "train.py").write_text(MODERN)

    def shortest(*command: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *command], cwd=project, check=True, capture_output=True
            )
            times.append(time.perf_counter() - start)
        return min(times)

    libraries = shortest("-c", "import click, pathspec")
    assert shortest("-m", "optim2optax", "rewrite", ".") < 2 * libraries + 0.1
