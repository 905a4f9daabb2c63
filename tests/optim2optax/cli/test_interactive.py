"""`optim2optax rewrite --interactive` at a terminal: what is asked, shown and written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.optim2optax.cli.terminal import CTRL_C, CTRL_D, Session, at_terminal
from tests.optim2optax.conftest import Run

TWO = """\
import jax
from flax import optim


def train_actor(params, grads):
    optimizer = optim.Adam(1e-3).create(params)
    return optimizer.apply_gradient(grads).target


def train_critic(params, grads):
    optimizer = optim.Momentum(0.1, beta=0.9).create(params)
    return jax.tree_map(abs, optimizer.apply_gradient(grads).target)
"""
CREATING = """\
from flax import optim


def create(params):
    return optim.Adam(1e-3).create(params)
"""
STEPPING = """\
import creating


def train(params, grads):
    return creating.create(params).apply_gradient(grads).target
"""


def answered(project: Path, *answers: str, options: tuple[str, ...] = ()) -> Session:
    return at_terminal(
        project, "rewrite", "--interactive", *options, ".", answers=answers
    )


@pytest.fixture
def two(project: Path) -> Path:
    path = project / "train.py"
    path.write_text(TWO)
    return path


def test_each_optimizer_is_asked_for(project: Path, two: Path) -> None:
    session = answered(project, "n", "y")
    assert session.exit_code == 0
    assert "Optimizer 1 of 2, train.py:6: Adam, 4 sites in 1 file" in session.plain
    assert "Optimizer 2 of 2, train.py:11: Momentum, 4 sites in 1 file" in session.plain
    assert (
        "\x1b[32m+    return optimizer.apply_gradients(grads=grads).params"
        in session.shown
    )
    assert "2 optimizers: 1 accepted, 1 declined" in session.plain
    after = two.read_text()
    assert "from flax import optim\n" in after
    assert (
        "optimizer = optim.Adam(1e-3).create(params)\n    return optimizer.apply_gradient(grads).target"
        in after
    )
    assert "optax.sgd(0.1, momentum=0.9)" in after


def test_the_diff_of_an_optimizer_is_its_own(project: Path, two: Path) -> None:
    """The import of optax is shown once: with the optimizer that brings it."""
    session = answered(project, "y", "y")
    first, second = session.plain.split("Migrate this optimizer", 1)
    assert "+import optax" in first
    assert "-from flax import optim" not in first
    assert "optax.sgd" not in first
    assert "+import optax" not in second
    assert "-from flax import optim" in second
    assert "-    optimizer = optim.Adam" not in second


@pytest.mark.parametrize(
    "answers", [("y", "y"), ("a",), ("y", "a"), ("e", "?", "", "y", "yes")]
)
def test_all_accepted_is_a_run_without_questions(
    project: Path, two: Path, run: Run, answers: tuple[str, ...]
) -> None:
    assert answered(project, *answers).exit_code == 0
    chosen = two.read_text()
    two.write_text(TWO)
    run("rewrite", ".")
    assert chosen == two.read_text()


@pytest.mark.parametrize("answers", [("n", "n"), ("q",), ("n", "q")])
def test_all_declined_changes_nothing(
    project: Path, two: Path, answers: tuple[str, ...]
) -> None:
    inode = two.stat().st_ino
    session = answered(project, *answers)
    assert session.exit_code == 0
    assert "2 optimizers: 0 accepted, 2 declined" in session.plain
    assert (two.read_text(), two.stat().st_ino) == (TWO, inode)


def test_quit_keeps_what_was_accepted(project: Path, two: Path) -> None:
    answered(project, "y", "q")
    assert "optax.adam(1e-3)" in two.read_text()
    assert "optim.Momentum(0.1, beta=0.9)" in two.read_text()


@pytest.mark.parametrize(("key", "exit_code"), [(CTRL_C, 130), (CTRL_D, 2)])
def test_the_end_of_input_writes_nothing(
    project: Path, two: Path, key: str, exit_code: int
) -> None:
    session = answered(project, "y", key)
    assert session.exit_code == exit_code
    assert "Nothing was written." in session.plain
    assert two.read_text() == TWO


def test_explanations(project: Path, two: Path) -> None:
    session = answered(project, "e", "q")
    assert (
        "FO202 target is params\n    train.py:7:12: optimizer.apply_gradient(grads).target → "
        in session.plain
    )
    assert "\nAdam" in session.plain.partition("FO204")[2]
    assert session.plain.count("Migrate this optimizer") == 2


def test_help_for_any_other_answer(project: Path, two: Path) -> None:
    session = answered(project, "x", "q")
    assert "q - leave this and all that is left" in session.plain
    assert two.read_text() == TWO


def test_what_belongs_to_no_optimizer_is_asked_once(project: Path, two: Path) -> None:
    session = answered(project, "y", "n", "n", options=("--modernize",))
    assert "Of no optimizer: 1 site in 1 file" in session.plain
    assert two.read_text() == TWO.replace("jax.tree_map", "jax.tree.map")
    two.write_text(TWO)
    answered(project, "n", "n", "y", options=("--modernize",))
    assert (
        "jax.tree_map(abs, optimizer.apply_gradients(grads=grads).params)"
        in two.read_text()
    )


def test_an_optimizer_of_two_files_is_one_question(project: Path) -> None:
    (project / "creating.py").write_text(CREATING)
    (project / "train.py").write_text(STEPPING)
    session = answered(project, "n")
    assert "Optimizer 1 of 1, creating.py:5: Adam, 4 sites in 2 files" in session.plain
    assert "+++ b/creating.py" in session.plain
    assert "+++ b/train.py" in session.plain
    assert (project / "creating.py").read_text() == CREATING
    assert (project / "train.py").read_text() == STEPPING


BY_HAND = """\
from flax import optim
from flax.optim.adam import _AdamHyperParams


def stepped(optimizer, grad, number):
    made = _AdamHyperParams(0.02, 0.1 * number, beta2=0.99, eps=1e-7, weight_decay=0.0)
    return optimizer.apply_gradient(grad, hyper_params=made)


def searched(optimizer, grad, **overrides):
    found = optimizer.optimizer_def.update_hyper_params(**overrides)
    return optimizer.apply_gradient(grad, hyper_params=found)


def train(params, grad):
    plain = optim.Momentum(0.02).create(params)
    exact = optim.Adam().create(params)
    tuned = optim.LAMB(0.01).create(params)
    plain = plain.apply_gradient(grad)
    return plain.target, stepped(exact, grad, 1), searched(tuned, grad, beta2=0.9)
"""


def test_optimizers_that_depend_on_each_other_are_one_question(project: Path) -> None:
    """Hyperparameters that are made by hand may be for any of those that take some."""
    (project / "train.py").write_text(BY_HAND)
    session = answered(project, "y", "n")
    assert "Optimizers 2 to 3 of 3, train.py:17, train.py:18" in session.plain
    assert session.plain.count("Migrate these optimizers") == 1
    assert "optim.LAMB(0.01)" in (project / "train.py").read_text()
    (project / "train.py").write_text(BY_HAND)
    session = answered(project, "n")
    assert (
        "The optimizer of train.py:18 stays: it migrates only with others"
        in session.plain
    )
    assert "3 optimizers: 0 accepted, 3 declined" in session.plain


def test_nothing_to_ask(project: Path) -> None:
    (project / "train.py").write_text("import optax\n")
    session = answered(project)
    assert (session.exit_code, session.plain.strip()) == (
        0,
        "Nothing to migrate in 1 file.",
    )


def test_many_repositories(project: Path) -> None:
    """Each has its own questions; an answer for all that is left is for the others, too."""
    for name in ("a", "b", "c"):
        (project / name / ".git").mkdir(parents=True)
        (project / name / "train.py").write_text(CREATING)
    session = answered(project, "n", "a")
    assert "Optimizer 1 of 1, b/train.py:5" in session.plain
    assert "3 optimizers: 2 accepted, 1 declined" in session.plain
    assert (project / "a/train.py").read_text() == CREATING
    assert "optax" in (project / "b/train.py").read_text()
    assert "optax" in (project / "c/train.py").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--check", "."), "--interactive asks what to write, and --check writes nothing"),
        (("--diff", "."), "--interactive asks what to write, and --diff writes nothing"),
        (("--output-format", "json", "."), "--interactive asks in text: it cannot report in json"),
        (("-",), "--interactive reads answers from standard input: it needs files"),
    ],
)  # fmt: skip
def test_wrong_usage(project: Path, options: tuple[str, ...], message: str) -> None:
    session = at_terminal(project, "rewrite", "--interactive", *options)
    assert session.exit_code == 2
    assert message in session.plain


def test_needs_a_terminal(project: Path, two: Path, run: Run) -> None:
    result = run("rewrite", "--interactive", ".")
    assert result.exit_code == 2
    assert "--interactive needs a terminal to ask in" in result.stderr
    assert two.read_text() == TWO


def test_the_page_shows_a_real_session(project: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/keyboard.md").read_text()
    program = re.search(r"```python title=train.py\n(.*?)```", page, re.DOTALL)
    shown = re.search(
        r"\$ optim2optax (rewrite --interactive .*?)\n(.*?)```", page, re.DOTALL
    )
    assert program is not None
    assert shown is not None
    (project / "train.py").write_text(program[1])
    session = at_terminal(project, *shown[1].split(), answers=("y", "n"))
    assert session.plain == shown[2]
