"""`optim2optax rewrite` in a git repository: changes that git could not give back are not overwritten."""

from pathlib import Path

import pytest

from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import write_files
from tests.optim2optax.repositories import commit_all, git

LEGACY = """\
from flax import optim


def create(params):
    return optim.Adam(learning_rate=1e-3).create(params)
"""
OTHER = "def loss(x):\n    return x\n"


@pytest.fixture
def repository(project: Path) -> Path:
    """A project of which all is committed."""
    files = {
        "train.py": LEGACY,
        "models/actor.py": LEGACY,
        "losses.py": OTHER,
        ".gitignore": "local.py\n",
        "requirements.txt": "flax==0.3.4\njax\n",
    }
    commit_all(write_files(project, files))
    return project


def edit(path: Path) -> None:
    path.write_text(path.read_text() + "\n# mine\n")


def test_changes_in_files_that_stay_do_not_matter(repository: Path, run: Run) -> None:
    edit(repository / "losses.py")
    (repository / "new.py").write_text(OTHER)
    (repository / "local.py").write_text(LEGACY)  # which git is told to ignore
    assert run("rewrite", ".").exit_code == 0
    assert "optax" in (repository / "train.py").read_text()
    assert run("rewrite", "local.py").exit_code == 0


def test_what_is_staged_can_be_had_back(repository: Path, run: Run) -> None:
    edit(repository / "train.py")
    git(repository, "add", "train.py")
    assert run("rewrite", ".").exit_code == 0


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_a_preview_never_asks(repository: Path, run: Run, option: str) -> None:
    edit(repository / "train.py")
    result = run("rewrite", option, ".")
    assert result.exit_code == 1
    assert "git" not in result.stderr


@pytest.mark.parametrize("name", ["models/actor.py", "requirements.txt"])
def test_an_edited_file_is_not_overwritten(
    repository: Path, run: Run, name: str
) -> None:
    edit(repository / name)
    words = ["rewrite", "--modernize", "."]
    result = run(*words)
    assert result.exit_code == 2
    assert f"\n  {name}\n" in result.stderr
    assert "--allow-dirty" in result.stderr
    assert "train.py" not in result.stderr
    assert (repository / "train.py").read_text() == LEGACY
    assert run(*words, "--allow-dirty").exit_code == 0
    assert "optax" in (repository / name).read_text()
    # nothing changes any more, so that nothing is asked
    assert run(*words).exit_code == 0


def test_nor_is_one_that_git_does_not_know(repository: Path, run: Run) -> None:
    (repository / "models/critic.py").write_text(LEGACY)
    result = run("rewrite", "models")
    assert result.exit_code == 2
    assert "models/critic.py" in result.stderr
    assert (repository / "models/actor.py").read_text() == LEGACY


def test_in_a_repository_within_another(repository: Path, run: Run) -> None:
    inner = repository / "vendored"
    inner.mkdir()
    (inner / "train.py").write_text(LEGACY)
    commit_all(inner)
    assert run("rewrite", "--diff", "vendored").exit_code == 1
    edit(inner / "train.py")
    assert run("rewrite", "vendored").exit_code == 2


def test_where_there_is_no_git(
    repository: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(repository / "train.py")
    monkeypatch.setenv("PATH", str(repository))
    assert run("rewrite", ".").exit_code == 0
