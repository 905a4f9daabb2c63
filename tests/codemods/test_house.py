"""One optimizer is one module, and so is a rule, and an idiom: nothing else is edited.

The walks of `tests/walks/` are taken in a copy of the repository, as a newcomer takes them: a module and its tests are added, and
for an idiom its line in the list of their order. Then all that lists modules has to know them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("codemods", "optim2optax", "tests", "docs", "fixtures")

LISTING = (
    "tests/codemods/idioms/test_order.py",
    "tests/codemods/rules/test_catalogue.py",
    "tests/optim2optax/checkpoints/test_page.py",
    "tests/optim2optax/cli/test_completion.py",
    "tests/optim2optax/cli/test_explain.py",
)
"""The tests of what lists all optimizers, rules and idioms."""

OF_EACH = (
    "tests/codemods/optimizers/test_convert.py",
    "tests/codemods/rules/test_classes.py",
    "tests/codemods/test_alike.py",
    "tests/optim2optax/parity/optimizer/test_emitted.py",
)
"""Those that do the same for each optimizer."""


@dataclass(frozen=True)
class Walk:
    """What a newcomer adds: a module, its tests, and perhaps a line of a list ahead of another."""

    kind: str
    module: str
    tests: str
    line: tuple[str, str, str] | None = None

    def take(self, repository: Path) -> None:
        """Add all that to a copy of the repository."""
        folder = ROOT / "tests" / "walks" / self.kind
        shutil.copy(folder / Path(self.module).name, repository / self.module)
        shutil.copy(folder / "checks.py", repository / self.tests)
        if self.line is not None:
            path, line, ahead_of = self.line
            lines = (repository / path).read_text().splitlines(keepends=True)
            lines.insert(lines.index(ahead_of), line)
            (repository / path).write_text("".join(lines))


WALKS = [
    Walk(
        "optimizer",
        "codemods/optimizers/yogi.py",
        "tests/codemods/optimizers/test_yogi.py",
    ),
    Walk(
        "rule",
        "codemods/rules/adagrad_checks.py",
        "tests/codemods/rules/test_adagrad_checks.py",
    ),
    Walk(
        "idiom",
        "codemods/idioms/scaling.py",
        "tests/codemods/idioms/test_scaling.py",
        (
            "codemods/rules/idioms.py",
            '    "codemods.idioms.scaling",\n',
            '    "codemods.idioms.own_states",\n',
        ),
    ),
]
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
PAGES = """
from pathlib import Path
from docs.generated import write_pages
write_pages(Path("docs"))
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of what is tracked, without what is built."""
    for name in COPIED:
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(repository: Path, *arguments: str) -> None:
    """Run Python in a copy of the repository, with the modules of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.kind)
def test_a_module_works_by_itself(walk: Walk, repository: Path) -> None:
    walk.take(repository)
    run(repository, *PYTEST, walk.tests)


def test_all_that_lists_modules_knows_new_ones(repository: Path) -> None:
    """They are explained, completed and numbered, and their pages are written."""
    for walk in WALKS:
        walk.take(repository)
    run(repository, *PYTEST, *LISTING)
    run(repository, *PYTEST, "-k", "Yogi", *OF_EACH)
    run(repository, "-c", PAGES)
    pages = [repository / "docs" / name for name in ("optimizers", "rules")]
    assert {"Yogi", "FO199", "FO599"} <= {
        page.stem for folder in pages for page in folder.iterdir()
    }
