"""The old side under an interpreter of its own, with the Flax and JAX of then."""

import shutil
import sys
from pathlib import Path

import pytest

from codemods.vocabulary import words
from optim2optax.parity.cases import scenario_case
from optim2optax.parity.judging.comparison import Verdict
from optim2optax.parity.running.interpreter import (
    VERSIONS,
    LegacyEnvironmentError,
    check_legacy_python,
    create_legacy_environment,
    find_python,
)
from optim2optax.parity.scenario.baseline import BaselineError, drive_elsewhere
from tests.optim2optax.conftest import Run
from tests.optim2optax.processes import environment, run_program

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures"
CASES = words(
    "batch_stats decorated_steps gan large_batch learning_rate_schedule maml pmap_replicate "
    "scan_over_steps target_network traversal_two_rates weight_decay weight_norm"
)


@pytest.mark.network
def test_the_environment_has_what_it_should(legacy_python: Path, run: Run) -> None:
    result = run("parity", "--create-legacy-env", legacy_python.parent.parent)
    assert (result.exit_code, result.stderr) == (0, "")
    assert ", flax 0.5.3, jax 0.4.13, " in result.stdout
    assert result.stdout.endswith(f"\nUse it with --legacy-python {legacy_python}\n")


CHECKPOINTS = """
import sys
import numpy as np
from flax import optim
from flax.training import checkpoints

optimizer = optim.Adam(0.1).create({"w": np.ones(2)})
for step in (9, 10):
    checkpoints.save_checkpoint(sys.argv[1], optimizer, step, keep=3)
    optimizer = optimizer.apply_gradient({"w": np.ones(2)})
restored = checkpoints.restore_checkpoint(sys.argv[1], optimizer)
print(checkpoints.latest_checkpoint(sys.argv[1]).rpartition("_")[2], restored.state.step)
"""


@pytest.mark.network
def test_the_environment_stores_and_restores_checkpoints(
    legacy_python: Path, tmp_path: Path
) -> None:
    words = (legacy_python, "-W", "ignore", "-c", CHECKPOINTS, tmp_path)
    done = run_program(*words, env=environment(XLA_FLAGS=""))

    assert done.stdout == "10 1\n", done.stderr


@pytest.mark.network
@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_the_same_verdict_as_in_one_process(name: str, legacy_python: Path) -> None:
    case = FIXTURES / name
    before, after = case / "before.py", case / "after.py"
    shown = scenario_case(name, case / "scenario.py", before, after, legacy_python)
    assert shown.comparison is not None, shown
    assert shown.outcome is not Verdict.DIFFERENT, shown


@pytest.mark.network
@pytest.mark.usefixtures("legacy_wheel")
def test_a_planted_error_is_found(legacy_python: Path, project: Path, run: Run) -> None:
    for name in ("scenario.py", "before.py", "after.py"):
        shutil.copy(FIXTURES / "maml" / name, project)
    text = (project / "after.py").read_text()
    assert "optax.adam(1e-2)" in text
    wrong = text.replace("optax.adam(1e-2)", "optax.adam(1e-2, b2=0.99901)")
    (project / "after.py").write_text(wrong)
    result = run("parity", "--legacy-python", legacy_python, "scenario.py")

    assert (result.exit_code, result.stderr) == (1, "")
    counted = "1 case: 0 identical, 0 equivalent, 1 different, 0 could not run"
    assert counted in result.stdout


@pytest.mark.network
def test_an_error_there_is_shown(legacy_python: Path, tmp_path: Path) -> None:
    scenario, before = tmp_path / "scenario.py", tmp_path / "before.py"
    text = "def run(module):\n    yield 0.0\n    raise RuntimeError('no data here')\n"
    scenario.write_text(text)
    before.write_text("from flax import optim\n")
    with pytest.raises(BaselineError, match="RuntimeError: no data here"):
        drive_elsewhere(legacy_python, scenario, before)


def test_an_interpreter_without_the_old_flax() -> None:
    why = r"has no flax\.optim .*--create-legacy-env"
    with pytest.raises(LegacyEnvironmentError, match=why):
        check_legacy_python(Path(sys.executable))


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(LegacyEnvironmentError, match="cannot be run"):
        check_legacy_python(tmp_path / "python")


@pytest.fixture
def launchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with programs: launchers of a version manager, which has none of the versions that they name."""
    for version in VERSIONS:
        launcher = tmp_path / f"python{version}"
        launcher.write_text("#!/bin/sh\nexit 127\n")
        launcher.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3.11"))
    return tmp_path


def test_launchers_without_a_python(launchers: Path) -> None:
    why = r"needs Python 3\.8 to 3\.11, and none was found"
    with pytest.raises(LegacyEnvironmentError, match=why):
        find_python()
    # the newest that answers
    for version in ("3.8", "3.9"):
        (launchers / f"python{version}").write_text(f"#!/bin/sh\necho {version}\n")
    assert find_python() == str(launchers / "python3.9")


def test_a_folder_that_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(LegacyEnvironmentError, match="is not empty"):
        create_legacy_environment(tmp_path)


def test_a_python_that_cannot_make_one(tmp_path: Path) -> None:
    false = shutil.which("false")
    assert false is not None
    why = "could not make a virtual environment"
    with pytest.raises(LegacyEnvironmentError, match=why):
        create_legacy_environment(tmp_path / "env", Path(false))
