"""`optim2optax parity`, and `pytest --parity` to which it is a front."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.usefixtures("legacy_wheel")

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
LEGACY = """
    from flax import optim

    def create(params, config):
        return optim.Adam(config.lr, beta2=0.99).create(params)

    def create_other(params, config):
        return optim.Momentum(config.lr).create(params)
    """
QUICK = ("--platform", "cpu", "--steps", "20")


def run(*words: str, cwd: Path, module: str = "optim2optax") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-m", module, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose last commit is legacy code, and whose working tree is migrated."""
    (tmp_path / "train.py").write_text(dedent(LEGACY))
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "old"]):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)
    assert run("rewrite", ".", cwd=tmp_path).returncode == 0
    return tmp_path


def test_legacy_code_is_proven_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(LEGACY))
    (tmp_path / "test_of_the_user.py").write_text("def test_of_the_user():\n    raise AssertionError\n")
    reports = [f"--{name}={tmp_path / f'parity.{name}'}" for name in ("json", "junit", "markdown", "html")]
    done = run("parity", *QUICK, *reports, ".", cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 cases: 1 identical, 1 equivalent, 0 different, 0 could not run" in done.stdout
    assert (tmp_path / "train.py").read_text() == dedent(LEGACY)
    content = json.loads((tmp_path / "parity.json").read_text())
    assert [case["name"] for case in content["cases"]] == ["train.py:5 Adam", "train.py:8 Momentum"]
    assert content["environment"]["platform"] == "cpu"
    suite = ET.parse(tmp_path / "parity.junit").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")
    assert "optax.adam(config.lr, b2=0.99)" in (tmp_path / "parity.html").read_text()
    assert "train.py:8 Momentum" in (tmp_path / "parity.markdown").read_text()
    assert not list(tmp_path.glob(".pytest_cache"))


def test_packages_are_not_imported(tmp_path: Path) -> None:
    """What a package imports may need the whole old world; none of it is run."""
    package = tmp_path / "lab" / "agents"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("import what_is_not_installed\n")
    (package / "train.py").write_text(dedent(LEGACY))
    for words in (["."], ["lab"], ["lab/agents/train.py"]):
        done = run("parity", *QUICK, *words, cwd=tmp_path)
        assert "2 cases: 1 identical, 1 equivalent" in done.stdout, done.stdout + done.stderr


def test_the_code_as_it_is_now_against_what_it_was(repository: Path) -> None:
    assert run("parity", *QUICK, "--before", "HEAD", ".", cwd=repository).returncode == 0

    path = repository / "train.py"
    path.write_text(path.read_text().replace("b2=0.99", "b2=0.98"))
    done = run("parity", *QUICK, "--before", "HEAD", "--jobs", "2", ".", cwd=repository)
    assert done.returncode == 1
    assert "different" in done.stdout
    assert "what departs: moments" in done.stdout

    path.write_text(path.read_text().replace("optax.adam(config.lr, b2=0.98)", "make(config)"))
    done = run("parity", *QUICK, "--before", "HEAD", ".", cwd=repository)
    assert done.returncode == 2
    assert "the new tree has no transformation at this place" in done.stdout


def test_scenarios_and_commands_with_an_old_tree(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, name in ((before, "before.py"), (after, "after.py")):
        folder.mkdir()
        shutil.copy(FIXTURES / "train_script" / name, folder / "train.py")
    scenario = (FIXTURES / "train_script" / "scenario.py").read_text()
    (after / "scenario.py").write_text(scenario.replace('"""\n', '"""\n\nmodule = "train.py"\n', 1))
    words = ("--before", str(before), ".", "--", "python", "train.py", "--steps", "4")
    done = run("parity", *QUICK, "--devices", "2", *words, cwd=after)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "python train.py --steps 4" in done.stdout
    assert "3 cases" in done.stdout

    alone = run("parity", *QUICK, *(word for word in words if word != "."), cwd=after)
    assert alone.returncode == 0, alone.stdout + alone.stderr
    assert "1 case:" in alone.stdout


def test_what_cannot_be_collected_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(LEGACY))
    done = run("parity", *QUICK, "train.py::missing", cwd=tmp_path)

    assert done.returncode == 2
    assert "train.py::missing" in done.stderr

    (tmp_path / "train.py").unlink()
    (tmp_path / "scenario.py").write_text("")
    done = run("parity", *QUICK, ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "1 could not run" in done.stdout
    assert "before.py" in done.stdout


def test_verify_writes_what_is_proven(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(LEGACY))
    (tmp_path / "odd.py").write_text(
        "from flax import optim\n\n\ndef create(params, groups):\n"
        "    return optim.Adam(*[0.1]).create(params), optim.Momentum(f'{0.1}').create(params)\n"
    )
    done = run("rewrite", "--verify", "--jobs", "1", ".", cwd=tmp_path)

    assert done.returncode == 1
    assert "Proving 3 optimizers" in done.stderr
    assert "optax.adam(config.lr, b2=0.99)" in (tmp_path / "train.py").read_text()
    assert "optim.Momentum(f'{0.1}')" in (tmp_path / "odd.py").read_text()
    assert "FO920" in done.stdout


WRONG = {
    "nothing to do": ([], "give files or directories"),
    "a command without an old side": (["--", "python", "train.py"], "a command needs --before"),
    "a path that is not there": (["nowhere.py"], "does not exist"),
    "a platform that is none": (["--platform", "abacus", "."], "abacus"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage(words: list[str], message: str, tmp_path: Path) -> None:
    done = run("parity", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_nothing_to_compare(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import jax\n")
    done = run("parity", *QUICK, ".", cwd=tmp_path)
    assert done.returncode == 0
    assert "There is no legacy optimizer" in done.stdout


def test_as_a_part_of_the_users_tests(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(LEGACY))
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    done = run("--parity", "--parity-steps=20", "-q", "-k", "Adam or own", ".", cwd=tmp_path, module="pytest")

    assert done.returncode == 0, done.stdout
    assert "2 passed, 1 deselected" in done.stdout
    assert "train.py:5 Adam" in done.stdout
    assert "passed" in run("-q", ".", cwd=tmp_path, module="pytest").stdout
