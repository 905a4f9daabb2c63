"""One optimizer is one module, and so is a rule, and an idiom: nothing else is edited.

The walks of `tests/walks/` are taken in a copy of the repository, as a newcomer takes them: a module and its tests are added, and
for an idiom its line in the list of their order. Then all that lists modules has to know them.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


IN_ORDER = (
    "codemods/rules/idioms.py",
    '    "codemods.idioms.scaling",\n',
    '    "codemods.idioms.own_states",\n',
)
WALKS = [
    Walk("optimizer", "codemods/optimizers/yogi.py", "tests/codemods/optimizers/test_yogi.py"),
    Walk("rule", "codemods/rules/adagrad_checks.py", "tests/codemods/rules/test_adagrad_checks.py"),
    Walk("construct", "codemods/rules/patched_adam.py", "tests/codemods/rules/test_patched_adam.py"),
    Walk("idiom", "codemods/idioms/scaling.py", "tests/codemods/idioms/test_scaling.py", IN_ORDER),
]  # fmt: skip
PAGES = """
from pathlib import Path
from docs.generated import write_pages
write_pages(Path("docs"))
"""


def run(repository: Path, *arguments: str) -> None:
    """Run Python in a copy of the repository, with the modules of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_work_and_all_that_lists_modules_knows_them(tmp_path: Path) -> None:
    """They pass their own tests, are explained, completed and numbered, and their pages are written."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for walk in WALKS:
        walk.take(tmp_path)

    whole = [*LISTING, *(walk.tests for walk in WALKS)]
    chosen = " or ".join(["Yogi", *(Path(file).stem for file in whole)])
    quick = f"({chosen}) and not exact"  # the judge compiles once
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", quick)
    run(tmp_path, *pytest, *whole, *OF_EACH)
    run(tmp_path, "-c", PAGES)
    for page in ("optimizers/Yogi", "rules/FO198", "rules/FO199", "rules/FO599"):
        assert list((tmp_path / "docs").glob(f"{page}.*")), page
