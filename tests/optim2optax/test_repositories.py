"""Of several repositories each is a project of its own. What must stay one project comes first."""

from pathlib import Path

import pytest

from optim2optax.legacy_wheel import WHEEL_VARIABLE
from tests.optim2optax.cli.terminal import at_terminal
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import read_files, write_files

MAKING = """\
from flax import optim


def make(params):
    return optim.Momentum(0.1, 0.9).create(params)
"""

STEPPING = """\
import making


def train(params, grads):
    optimizer = making.make(params)
    for grad in grads:
        optimizer = optimizer.apply_gradient(grad)
    return optimizer.target
"""

LOGGING = """\
def log(optimizer):
    print(vars(optimizer)["state"])
"""

LOGGED = """\
from flax import optim
import logs


def train(params, grads):
    optimizer = optim.Adam(0.1).create(params)
    for grad in grads:
        optimizer = optimizer.apply_gradient(grad)
    logs.log(optimizer)
    return optimizer.target
"""

UNLOGGED = LOGGED.replace("    logs.log(optimizer)\n", "")

KEEPING = """\
from flax import optim
import lab_tools


def make(params, rate):
    definition = optim.Adam(rate)
    lab_tools.use(definition.apply_gradient)
    return definition.create(params)
"""


def write(root: Path, files: dict[str, str], *, repository: bool = True) -> None:
    write_files(root, files)
    if repository:
        (root / ".git").mkdir()


def read(root: Path) -> dict[str, str]:
    return {path: content.decode() for path, content in read_files(root).items()}


@pytest.mark.parametrize("inner", ["file", "folder"])
def test_what_is_within_a_repository_belongs_to_it(
    project: Path, run: Run, inner: str
) -> None:
    """A submodule's optimizer is stepped by the repository around it: both change, or neither does."""
    write(project / "outer", {"train.py": STEPPING, "library/making.py": MAKING})
    marker = project / "outer/library/.git"
    if inner == "file":
        marker.write_text("gitdir: ../.git/modules/library\n")
    else:
        marker.mkdir()
    assert run("rewrite", "outer").exit_code == 0
    after = read(project / "outer")
    assert "TrainState.create" in after["library/making.py"]
    assert "optimizer.apply_gradients(grads=grad)" in after["train.py"]


def test_folders_without_a_repository_are_one_project(project: Path, run: Run) -> None:
    write(project / "src", {"train.py": STEPPING}, repository=False)
    write(project / "library", {"making.py": MAKING}, repository=False)
    assert run("rewrite", "src", "library").exit_code == 0
    assert "optimizer.apply_gradients(grads=grad)" in read(project)["src/train.py"]


def test_each_is_migrated_as_if_it_were_alone(project: Path, run: Run) -> None:
    """A module that only another repository has is as unknown as without that, and its own uses are no uses of this one's."""
    repositories = {
        "first": {"train.py": LOGGED},
        "second": {"logs.py": LOGGING, "other.py": LOGGED},
        "third": {"a.py": MAKING},
    }
    for name, files in repositories.items():
        write(project / "alone" / name, files)
        write(project / "together" / name, files)
    for name in repositories:
        run("rewrite", f"alone/{name}")
    run("rewrite", "together")
    assert read(project / "together") == read(project / "alone")
    assert "optax" not in (project / "together/second/other.py").read_text()


def test_the_dependencies_of_others_stay(project: Path, run: Run) -> None:
    old = "flax==0.3.4\noptax==0.0.9\njax==0.2.20\n"
    write(project / "legacy", {"train.py": UNLOGGED, "requirements.txt": old})
    write(project / "modern", {"train.py": "import jax\n", "requirements.txt": old})
    assert run("rewrite", "--modernize", ".").exit_code == 0
    after = read(project)
    assert "optax>=0.2.4" in after["legacy/requirements.txt"].replace(" ", "")
    assert after["modern/requirements.txt"] == old


def test_what_optax_brought_once_is_declared(project: Path, run: Run) -> None:
    files = {"train.py": UNLOGGED, "requirements.txt": "absl-py\nflax==0.3.4\n"}
    write(project / "with", files | {"checks.py": "import chex\n"})
    ahead = {"requirements.txt": "einops\nflax\njax\n"}
    write(project / "ahead", files | ahead | {"checks.py": "import chex\n"})
    write(project / "without", files | {"checks.py": "import chess\n# import chex\n"})
    assert run("rewrite", "--modernize", ".").exit_code == 0
    after = read(project)
    bounds = "absl-py\nflax>=0.8.0\nchex>=0.1.87\noptax>=0.2.4\n"
    assert after["with/requirements.txt"] == bounds
    assert after["ahead/requirements.txt"] == "einops\nflax\nchex\njax\noptax\n"
    assert "chex" not in after["without/requirements.txt"]
    again = run("rewrite", "--modernize", ".")
    assert (again.exit_code, read(project)) == (0, after)


def test_a_copy_is_put_into_each_that_needs_one(
    project: Path, run: Run, legacy_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WHEEL_VARIABLE, str(legacy_wheel))
    write(project / "first", {"train.py": LOGGED, "logs.py": LOGGING})
    write(project / "second", {"train.py": STEPPING, "making.py": MAKING})
    run("rewrite", "--vendor", ".")
    assert (project / "first/legacy_flax_optim/__init__.py").exists()
    assert not (project / "second/legacy_flax_optim").exists()


def test_a_note_has_paths_from_the_current_folder_on(project: Path, run: Run) -> None:
    write(project / "first", {"lab/train.py": KEEPING})
    write(project / "second", {"other.py": MAKING})
    lines = run("rewrite", "first", "second").stdout.splitlines()
    notes = [line for line in lines if ": note " in line]
    assert notes
    for note in notes:
        assert "has none, or another (first/lab/train.py:7)." in note


@pytest.fixture
def lab(project: Path) -> Path:
    """Many repositories, of which some stay in part."""
    for number in range(8):
        files = {f"{name}.py": MAKING for name in "abcd"}
        files |= {"train.py": LOGGED, "logs.py": LOGGING} if number % 4 == 3 else {}
        write(project / f"paper{number}", files)
    return project


def test_the_report_ends_with_a_line_for_each(lab: Path) -> None:
    session = at_terminal(lab, "rewrite", "--check", "paper2", "paper3")
    assert session.exit_code == 1
    assert session.plain.splitlines()[-3:] == [
        "repository  files  changed  optimizers     sites  errors",
        "paper2          4        4      4 of 4  12 of 12       0",
        "paper3          6        4      4 of 5  12 of 18       0",
    ]


def test_one_repository_needs_no_table(lab: Path, run: Run) -> None:
    assert "repository" not in run("rewrite", "--check", "paper3").stdout


def test_many_processes_give_the_same(lab: Path, run: Run) -> None:
    alone = run("rewrite", "--diff", "--modernize", "--jobs", "1", ".")
    together = run("rewrite", "--diff", "--modernize", "--jobs", "2", ".")
    assert (together.stdout, together.stderr) == (alone.stdout, alone.stderr)
    assert together.exit_code == alone.exit_code == 1
