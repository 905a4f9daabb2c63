"""`rewrite --vendor`: what is written, what is said, and that later runs keep it for as long as it is needed."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from codemods.vendoring.packages import OPTIM
from optim2optax.legacy_wheel import WHEEL_VARIABLE
from optim2optax.parity.command.verdict import compare_command
from optim2optax.parity.judging.comparison import Verdict
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import notebook, read_files, write_files
from tests.optim2optax.programs import LEGACY, MODERN, UNPARSABLE, UNRESOLVABLE

pytestmark = pytest.mark.usefixtures("legacy_wheel")

NAME = "legacy_flax_optim"
POINTED = UNRESOLVABLE.replace("from flax import optim", f"import {NAME} as optim")
CHOICE = "getattr(optim, name, None)(learning_rate=0.1)"
DECIDED = POINTED.replace(CHOICE, "optim.Momentum(0.1)")
CODES = ("FO901", "FO903", "FO911")


@pytest.fixture
def script(project: Path) -> Path:
    """A script with an optimizer that cannot be migrated, beside one whose optimizer can."""
    files = {"stays.py": UNRESOLVABLE, "goes.py": LEGACY, "modern.py": MODERN}
    return write_files(project, files)


@pytest.fixture
def vendored(script: Path, run: Run) -> Path:
    """The same, with a copy."""
    assert run("rewrite", "--vendor", ".").exit_code == 0
    return script


def test_what_needs_no_copy_gets_none(project: Path, run: Run) -> None:
    write_files(project, {"goes.py": LEGACY, "modern.py": MODERN})
    assert run("rewrite", "--vendor", ".").exit_code == 0
    assert {*read_files(project)} == {"goes.py", "modern.py"}
    told = run("rewrite", "--vendor", "modern.py").stdout
    assert told == "Nothing to migrate in 1 file.\n"


def test_it_is_made_for_nobody_who_does_not_ask(script: Path, run: Run) -> None:
    assert run("rewrite", ".").exit_code == 1
    assert {*read_files(script)} == {"goes.py", "modern.py", "stays.py"}
    assert (script / "stays.py").read_text() == UNRESOLVABLE


def test_what_is_written(script: Path, run: Run) -> None:
    result = run("rewrite", "--vendor", ".")
    assert result.exit_code == 0
    assert (script / "stays.py").read_text() == POINTED
    assert "legacy" not in (script / "goes.py").read_text()
    copied = {f"{NAME}/{name}" for name in OPTIM.modules}
    assert {*read_files(script)} == {"goes.py", "modern.py", "stays.py", *copied}
    written = f"{NAME}: 14 files written: __init__.py, adabelief.py, "
    summary = "8 sites in 2 files: 5 rewritten, 0 suppressed, 3 vendored, 0 unresolved"
    assert "stays.py:5:20: FO903 vendored: " in result.stdout
    assert f"stays.py: 0 sites rewritten, 3 vendored\n{written}" in result.stdout
    assert result.stdout.endswith(f"{summary}\n")


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_previews_write_nothing(script: Path, run: Run, option: str) -> None:
    before = read_files(script)
    result = run("rewrite", "--vendor", option, ".")
    assert result.exit_code == 1
    assert f"{NAME}: 14 files would be written: " in result.output
    assert read_files(script) == before


@pytest.mark.parametrize("is_new", [True, False])
def test_the_diff_is_a_patch(script: Path, run: Run, is_new: bool) -> None:
    if not is_new:
        run("rewrite", "--vendor", ".")
        (script / "stays.py").write_text(DECIDED)
    patch = run("rewrite", "--vendor", "--diff", ".").stdout_bytes
    run("rewrite", "--vendor", ".")
    expected = read_files(script)
    for reverse in (["-R"], []):
        command = ["git", "apply", "--unsafe-paths", *reverse]
        subprocess.run(command, cwd=script, input=patch, check=True)
        assert (read_files(script) == expected) == (not reverse)


@pytest.mark.parametrize(
    "options", ["", "--vendor", "--check", "--vendor --check", "--modernize"]
)
def test_a_second_run_changes_nothing(vendored: Path, run: Run, options: str) -> None:
    before = read_files(vendored)
    result = run("rewrite", *options.split(), ".")
    assert result.exit_code == 0
    assert read_files(vendored) == before
    assert "3 sites in 1 file: 0 " in result.stdout
    assert result.stdout.endswith("0 suppressed, 3 vendored, 0 unresolved\n")


def test_a_file_by_itself_is_known_to_import_a_copy(vendored: Path, run: Run) -> None:
    step = "def step(o: Optimizer, grads):\n    return o.apply_gradient(grads)\n"
    stepped = POINTED.replace("create(params)", "create(params).apply_gradient(params)")
    (vendored / "step.py").write_text(f"from {NAME} import Optimizer\n\n\n{step}")
    (vendored / "stays.py").write_text(stepped)
    before = read_files(vendored)
    assert run("rewrite", "stays.py").exit_code == 0
    assert read_files(vendored) == before


def test_a_copy_that_is_excluded_is_known(project: Path, run: Run) -> None:
    step = "def step(o, g):\n    return make.create_optimizer('Adam', o)\n"
    kit = {"kit/__init__.py": "", "kit/make.py": UNRESOLVABLE}
    write_files(project, {**kit, "train.py": f"from kit import make\n\n\n{step}"})
    run("rewrite", "--vendor", ".")
    before = read_files(project)
    again = run("rewrite", "--exclude", f"kit/{NAME}", ".").stdout
    assert again.endswith("3 vendored, 0 unresolved\n")
    assert read_files(project) == before


def test_what_is_migrated_later_needs_it_no_more(vendored: Path, run: Run) -> None:
    (vendored / "stays.py").write_text(DECIDED)
    result = run("rewrite", ".")
    assert result.exit_code == 0
    assert NAME not in (vendored / "stays.py").read_text()
    before = read_files(vendored)
    assert run("rewrite", ".").exit_code == 0
    assert read_files(vendored) == before


def test_configuration(script: Path, run: Run) -> None:
    (script / "pyproject.toml").write_text("[tool.optim2optax]\nvendor = true\n")
    assert run("rewrite", "--no-vendor", ".").exit_code == 1
    assert run("rewrite", ".").exit_code == 0
    assert (script / "stays.py").read_text().startswith(f"import {NAME} as optim\n")


def test_a_part_of_a_package(project: Path, run: Run) -> None:
    """The `__init__.py` files around what is given count, whether they are given or not."""
    inits = {"kit/__init__.py": "", "kit/deep/__init__.py": ""}
    write_files(project, {**inits, "kit/deep/make.py": UNRESOLVABLE})
    assert run("rewrite", "--vendor", "kit/deep/make.py").exit_code == 0
    code = (project / "kit/deep/make.py").read_text()
    assert code.startswith(f"from kit.deep import {NAME} as optim\n")


def test_a_program_in_each_folder(project: Path, run: Run) -> None:
    """No folder is found by both, and they have no objects in common: each has its copy."""
    write_files(project, {"a/train.py": UNRESOLVABLE, "b/train.py": UNRESOLVABLE})
    assert run("rewrite", "--vendor", ".").exit_code == 0
    for folder in ("a", "b"):
        code = (project / folder / "train.py").read_text()
        assert code.startswith(f"import {NAME} as optim\n")
        assert (project / folder / NAME / "adam.py").exists()
    before = read_files(project)
    assert run("rewrite", "--vendor", ".").exit_code == 0
    assert read_files(project) == before


def test_a_folder_of_that_name_is_left(script: Path, run: Run) -> None:
    (script / NAME).mkdir()
    (script / NAME / "notes.txt").write_text("")
    result = run("rewrite", "--vendor", ".")
    assert result.exit_code == 1
    assert "FO928" in result.stdout
    assert {*read_files(script / NAME)} == {"notes.txt"}


def test_standard_input(script: Path, run: Run) -> None:
    result = run("rewrite", "--vendor", "-")
    assert result.exit_code == 2
    assert "--vendor needs files, not standard input" in result.stderr


def test_another_wheel(script: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHEEL_VARIABLE, "stays.py")
    before = read_files(script)
    result = run("rewrite", "--vendor", ".")
    assert result.exit_code == 2
    assert "is not the published wheel" in result.stderr
    assert read_files(script) == before


def test_a_file_that_cannot_be_parsed_is_left(script: Path, run: Run) -> None:
    (script / "broken.py").write_text(UNPARSABLE)
    result = run("rewrite", "--vendor", ".")
    assert result.exit_code == 1
    assert (script / "broken.py").read_text() == UNPARSABLE
    assert (script / "stays.py").read_text() == POINTED


def test_a_notebook(project: Path, run: Run) -> None:
    text = notebook("from flax import optim  # all\nprint(optim)")
    (project / "train.ipynb").write_text(text)
    assert run("rewrite", "--vendor", ".").exit_code == 0
    pointed = text.replace("from flax import optim", f"import {NAME} as optim")
    assert (project / "train.ipynb").read_text() == pointed
    assert run("rewrite", "--check", ".").exit_code == 0


def test_json(script: Path, run: Run) -> None:
    words = ("rewrite", "--vendor", "--check", "--output-format", "json", ".")
    report = json.loads(run(*words).stdout)
    files = {"files_scanned": 3, "files_changed": 16, "sites": 8, "errors": 0}
    sites = {"rewritten": 5, "suppressed": 0, "vendored": 3, "unresolved": 0}
    assert report["summary"] == files | sites
    kinds = {entry["path"]: entry["kind"] for entry in report["files"]}
    assert kinds["stays.py"] == "edited"
    assert kinds[f"{NAME}/adam.py"] == "new"
    [left] = [file["sites"] for file in report["files"] if file["path"] == "stays.py"]
    assert {site["code"] for site in left} == {*CODES}
    assert {site["status"] for site in left} == {"vendored"}
    assert all(site["message"] and site["remedy"] for site in left)


def test_github_and_sarif(script: Path, run: Run) -> None:
    words = ("rewrite", "--vendor", "--check", "--output-format")
    place = "file=stays.py,line=5,col=20,endColumn=25,title=FO903"
    assert f"::notice {place}::vendored: " in run(*words, "github", ".").stdout
    report = json.loads(run("rewrite", "--vendor", *words[3:], "sarif", ".").stdout)
    found = report["runs"][0]["results"]
    assert {result["ruleId"] for result in found} == {*CODES}
    assert {result["level"] for result in found} == {"note"}


TRAINING = """

import jax.numpy as jnp

optimizer = create_optimizer("Adam", {"w": jnp.ones(3)})
for _ in range(12):
    optimizer = optimizer.apply_gradient({"w": jnp.ones(3)})
"""


@pytest.mark.thorough
def test_parity_records_a_copy_on_either_side(
    project: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """First `flax.optim` against a copy, then the copy against optax."""
    monkeypatch.setenv("XLA_FLAGS", "")
    (project / "train.py").write_text(UNRESOLVABLE + TRAINING)
    copy, modern = project.with_name("copy"), project.with_name("modern")
    shutil.copytree(project, copy)
    monkeypatch.chdir(copy)
    assert run("rewrite", "--vendor", ".").exit_code == 0
    command = ("python", "train.py")
    found = compare_command(command, str(project), copy)
    assert found.verdict is Verdict.IDENTICAL
    assert NAME not in str(run("parity", ".").output)
    shutil.copytree(copy, modern)
    monkeypatch.chdir(modern)
    decided = UNRESOLVABLE.replace(CHOICE, "optim.Adam(0.1)")
    (modern / "train.py").write_text(decided + TRAINING)
    run("rewrite", ".")
    shutil.rmtree(modern / NAME)
    found = compare_command(command, str(copy), modern)
    assert found.verdict is not Verdict.DIFFERENT
