"""A training command, run on the old tree and on the new: the shipped example, with four devices."""

import math
import os
import shutil
from pathlib import Path

import pytest

from codemods import Options, Source, migrate
from optim2optax.parity.command.runs import CommandError
from optim2optax.parity.command.verdict import compare_command
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.running.devices import HOST_DEVICES
from optim2optax.parity.running.trees import TreeError
from tests.optim2optax.parity.differences import first_difference
from tests.optim2optax.repositories import commit_all, git

pytestmark = pytest.mark.usefixtures("legacy_wheel")

EXAMPLE = Path(__file__).resolve().parents[4] / "fixtures" / "train_script"
COMMAND = ("python", "train.py", "--steps", "10")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose last commit is legacy code, and whose working tree is migrated."""
    flags = os.environ["XLA_FLAGS"].split()
    others = [flag for flag in flags if not flag.startswith(HOST_DEVICES)]
    monkeypatch.setenv("XLA_FLAGS", " ".join([*others, f"{HOST_DEVICES}=4"]))
    folder = tmp_path / "lab" / "project"
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLE / "before.py", folder / "train.py")
    commit_all(folder.parent)
    shutil.copy(EXAMPLE / "after.py", folder / "train.py")
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_same_updates_and_nothing_is_written_to_the_tree(repository: Path) -> None:
    def files() -> list[Path]:
        paths = repository.parent.rglob("*")
        return sorted(path for path in paths if ".git" not in path.parts)

    main = "def main():\n"
    edit(repository / "train.py", main, f"{main}    open('trace.txt', 'w').close()\n")
    before = files()
    comparison = compare_command(COMMAND, "HEAD", repository)

    assert comparison.verdict is not Verdict.DIFFERENT, comparison
    assert comparison.steps == 10
    assert files() == before


@pytest.mark.thorough
def test_a_planted_error_is_found_at_its_step_and_leaf(repository: Path) -> None:
    step = "        optimizer, loss = parallel_step(optimizer, x, y)\n"
    wrong = """\
        if step == 6:
            dense = optimizer.params['Dense_1']
            dense = {**dense, 'bias': dense['bias'] + 1e-6}
            optimizer = optimizer.replace(params={**optimizer.params, 'Dense_1': dense})
"""
    edit(repository / "train.py", step, step + wrong)
    first = first_difference(compare_command(COMMAND, "HEAD", repository))

    assert (first.step, first.leaf) == (7, "Dense_1/bias")


@pytest.mark.thorough
def test_a_side_that_takes_fewer_steps(repository: Path) -> None:
    edit(repository / "train.py", "batches(1, steps)", "batches(1, steps - 1)")
    first = first_difference(compare_command(COMMAND, "HEAD", repository))

    assert first.step == 9
    assert math.isfinite(first.before)
    assert math.isnan(first.after)
    assert first.link == (
        "only the old side takes this step; the old side took 10 steps of this optimizer, the new side 9"
    )


def test_a_side_that_takes_no_step(repository: Path) -> None:
    with pytest.raises(CommandError, match="the old side took no step"):
        compare_command(("python", "train.py", "--steps", "0"), "HEAD", repository)


def test_a_revision_that_is_not_there(repository: Path) -> None:
    with pytest.raises(TreeError, match="neither a folder nor a revision"):
        compare_command(COMMAND, "no-such-branch", repository)


LOOP = """
import sys

from flax import optim
import jax
import jax.numpy as jnp

@jax.jit
def step(optimizer, x):
    grads = jax.grad(lambda params: jnp.mean((x @ params["w"] - 1.0) ** 2))(optimizer.target)
    return optimizer.apply_gradient(grads)

def train(params):
    optimizer = optim.Adam(0.1).create(params)
    for key in jax.random.split(jax.random.PRNGKey(0), 9):
        optimizer = step(optimizer, jax.random.normal(key, (4, 3)))
    return optimizer.target

print(train({"w": jnp.zeros((3, 2000))}))
sys.exit()
"""


@pytest.mark.parametrize(
    ("command", "rate", "equal"),
    [
        (("python", "-m", "loop"), "0.1", True),
        pytest.param(("./loop.py",), "0.11", False, marks=pytest.mark.thorough),
    ],
)
def test_updates_of_many_parameters_that_are_applied_by_hand(
    repository: Path, command: tuple[str, ...], rate: str, equal: bool
) -> None:
    [result] = migrate([Source("loop.py", LOOP.encode())], Options(style="functional"))
    assert b"optax.apply_updates(params, updates)" in result.after
    (repository / "loop.py").write_text(LOOP)
    git(repository, "add", "loop.py")
    git(repository, "commit", "-q", "-m", "loop")
    now = result.after.decode().replace("0.1)", f"{rate})")
    (repository / "loop.py").write_text(now)

    comparison = compare_command(command, "HEAD", repository)

    assert comparison.steps == 9
    assert (comparison.verdict is not Verdict.DIFFERENT) is equal


MEMBERS = """
from flax import optim
import jax
import jax.numpy as jnp

definition = optim.Momentum(0.1, beta=0.8)

def step(params, state, x):
    grads = jax.grad(lambda params: jnp.mean((x @ params["w"] - 1.0) ** 2))(params)
    return definition.apply_gradient(definition.hyper_params, params, state, grads)

params = {"w": jnp.arange(6.0).reshape(2, 3)}
state = jax.vmap(definition.init_state)(params)
for key in jax.random.split(jax.random.PRNGKey(0), 10):
    params, state = jax.jit(jax.vmap(step))(params, state, jax.random.normal(key, (2, 4, 3)))
"""


@pytest.mark.thorough
def test_members_of_a_definition_that_never_becomes_an_optimizer(
    repository: Path, tmp_path: Path
) -> None:
    [result] = migrate([Source("members.py", MEMBERS.encode())])
    old = tmp_path / "old" / "project" / "members.py"
    old.parent.mkdir(parents=True)
    old.write_text(MEMBERS)
    now = result.after.decode().replace("beta=0.8)", "beta=0.800001)")
    (repository / "members.py").write_text(now)

    command = ("python", "members.py")
    comparison = compare_command(command, str(tmp_path / "old"), repository)

    assert comparison.steps == 20
    assert first_difference(comparison).leaf == "w"
