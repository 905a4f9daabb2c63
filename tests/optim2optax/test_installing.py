"""Installed as others install it, by real pre-commit: small, complete, and its hooks fail first, then pass."""

import os
import shutil
import venv
from pathlib import Path

import pytest

from codemods.vocabulary import words
from optim2optax import __version__
from tests.optim2optax.processes import Done, environment, run_program, run_python
from tests.optim2optax.programs import LEGACY, STEPS, TRAIN
from tests.optim2optax.repositories import commit_all, git

ROOT = Path(__file__).parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
PACKAGES = ("codemods", "optim2optax")

CONFIGURATION = """\
repos:
  - repo: {}
    rev: released
    hooks:
      - id: optim2optax-check
      - id: optim2optax
"""


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed for a few runs is not compiled ahead of them."""
    monkeypatch.setenv("PIP_NO_COMPILE", "1")


@pytest.fixture
def hooks(tmp_path: Path) -> Path:
    """A repository with what is shipped, and nothing else."""
    folder = tmp_path / "optim2optax"
    folder.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for part in PARTS:
        shutil.copy(ROOT / part, folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    commit_all(folder)
    return folder


@pytest.mark.network
def test_hooks(tmp_path: Path, project: Path, hooks: Path) -> None:
    """With one file of three staged: one is judged, and all are rewritten."""
    programs = {"train.py": TRAIN, "steps.py": STEPS, "other.py": LEGACY}
    for name, program in programs.items():
        (project / name).write_text(program)
    commit_all(project)
    (project / "steps.py").write_text(f"# staged\n{STEPS}")
    git(project, "add", "steps.py")
    git(hooks, "tag", "released")
    (project / ".pre-commit-config.yaml").write_text(CONFIGURATION.format(hooks))
    git(project, "add", ".pre-commit-config.yaml")
    own = {name: os.environ[name] for name in os.environ if name[:4] != "GIT_"}
    own["PRE_COMMIT_HOME"] = str(tmp_path / "cache")

    def run_hook(hook: str) -> Done:
        words = ("-m", "pre_commit", "run", hook, "--color=never")
        return run_python(*words, cwd=project, env=own)

    checked = run_hook("optim2optax-check")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    told = "steps.py:3:12: FO931 This optimizer is used in train.py too"
    assert told in checked.stdout
    assert "1 site in 1 file" in checked.stdout
    assert (project / "train.py").read_text() == TRAIN

    first = run_hook("optim2optax")
    assert first.returncode == 1, first.stdout + first.stderr
    assert "files were modified by this hook" in first.stdout
    assert "10 sites in 3 files: 10 rewritten" in first.stdout
    assert "optax.adam(" in (project / "train.py").read_text()
    assert "optax.sgd(" in (project / "other.py").read_text()

    git(project, "add", "--all")
    for hook in ("optim2optax", "optim2optax-check"):
        again = run_hook(hook)
        assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.network
def test_a_clean_environment(tmp_path: Path, project: Path, hooks: Path) -> None:
    """Installing brings the typed packages, no tests, and nothing of the `parity` extra; and the command works there."""
    venv.create(tmp_path / "venv")
    binaries = tmp_path / "venv" / "bin"
    install(binaries, str(hooks))
    [packages] = (tmp_path / "venv").glob("lib/python*/site-packages")
    installed = {path.name for path in packages.iterdir()}
    assert {"codemods", "optim2optax", "libcst", "click", "pathspec"} <= installed
    assert not installed & {*words("jax jaxlib flax optax numpy tests fixtures")}
    for package in PACKAGES:
        assert files(packages, package) == files(hooks, package)
        assert (packages / package / "py.typed").exists()

    (project / "train.py").write_text(LEGACY)
    command = binaries / "optim2optax"
    done = run_program(command, "rewrite", ".")
    assert done.stdout.startswith("train.py: 5 sites rewritten\n")

    for line in ("checkpoint inspect train.py", "parity ."):
        refused = run_program(command, *line.split(), env=environment())
        assert refused.returncode == 2
        assert f"pip install 'optim2optax[{line.split()[0]}]'" in refused.stderr
    install(binaries, f"{hooks}[checkpoint]")
    assert run_program(command, "checkpoint", "inspect", "train.py").returncode == 1


TOOLS = {
    "uvx": "uvx --from . optim2optax rewrite ../project",
    "pipx": "pipx install . && tools/optim2optax rewrite ../project",
}


@pytest.mark.network
@pytest.mark.parametrize("command", TOOLS.values(), ids=TOOLS)
def test_as_a_tool(command: str, project: Path, hooks: Path) -> None:
    """Without an environment of one's own."""
    assert " ".join(command.split()[:3]) in (ROOT / "README.md").read_text()
    (project / "train.py").write_text(LEGACY)
    own = {"UV_TOOL_DIR": "uv", "UV_CACHE_DIR": "cache", "PIPX_HOME": "pipx"}
    own["PIPX_BIN_DIR"] = "tools"
    places = {name: str(hooks / folder) for name, folder in own.items()}
    done = run_program("sh", "-c", command, cwd=hooks, env=environment(**places))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "train.py: 5 sites rewritten\n" in done.stdout


def test_the_citation_has_the_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation


def install(binaries: Path, requirement: str) -> None:
    """Install in an environment; uv takes a fifth of the time of pip, by which pre-commit installs."""
    words = ("-m", "uv", "pip", "install", "--python", binaries / "python", requirement)
    done = run_python(*words)
    assert done.returncode == 0, done.stderr


def files(root: Path, package: str) -> set[Path]:
    return {
        path.relative_to(root)
        for path in (root / package).rglob("*")
        if "__pycache__" not in path.parts
    }
