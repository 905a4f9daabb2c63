"""The steps of the GitHub Action, run as far as that goes without GitHub."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.optim2optax.folders import write_files
from tests.optim2optax.processes import Done, environment, run_program
from tests.optim2optax.programs import MODERN, STEPS, TRAIN

ACTION = Path(__file__).resolve().parent.parent / "action.yml"
pytestmark = pytest.mark.usefixtures("legacy_wheel")


def step(name: str) -> str:
    """The shell script of a step."""
    script = r"      run: (\|\n(?:        .*\n|\n)+|.*\n)"
    found = re.search(rf"- name: {name}\n(?:.*\n)*?{script}", ACTION.read_text())
    assert found is not None
    return dedent(found[1].removeprefix("|\n"))


def run(name: str, folder: Path, **variables: str) -> Done:
    for file in ("output", "summary"):
        (folder / file).touch()
    inputs = {
        "RUNNER_TEMP": str(folder / "temp"),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "PATHS": "src",
        "BEFORE": "",
        "COMMAND": "",
        **variables,
    }
    words = ("bash", "-e", "-o", "pipefail", "-c", step(name))
    return run_program(*words, cwd=folder, env=environment(**inputs))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    create = (
        "def create(params):\n    return optim.GradientDescent(0.1).create(params)\n"
    )
    text = f"from flax import optim\n\n\n{create}"
    return write_files(tmp_path, {"src/train.py": text})


def test_legacy_code_fails_the_check_with_annotations(project: Path) -> None:
    done = run("Rewrite check", project)
    assert done.returncode == 1
    assert "file=src/train.py,line=1,col=1" in done.stdout


def test_one_file_of_three_is_checked_within_its_project(project: Path) -> None:
    (project / ".git").mkdir()
    for name, program in (("loop", TRAIN), ("steps", STEPS)):
        (project / "src" / f"{name}.py").write_text(program)
    done = run("Rewrite check", project, PATHS="src/steps.py")
    assert done.returncode == 1
    assert "file=src/steps.py,line=2,col=12" in done.stdout
    told = "This optimizer is used in src/loop.py too, which was not named"
    assert told in done.stdout
    assert done.stdout.count("::") == 2  # one annotation
    (project / "src" / "steps.py").write_text(MODERN)
    assert run("Rewrite check", project, PATHS="src/steps.py").returncode == 0


def test_parity_leaves_reports_and_a_summary(project: Path) -> None:
    done = run("Parity", project)
    reports = project / "temp" / "parity"

    assert done.returncode == 0, done.stdout + done.stderr
    kinds = ("html", "json", "md", "xml")
    names = sorted(path.name for path in reports.iterdir())
    assert names == [f"parity.{kind}" for kind in kinds]
    assert "src/train.py:5 GradientDescent" in (project / "summary").read_text()
    assert (project / "output").read_text() == f"report={reports}/parity.json\n"


def test_what_could_not_run_fails_the_step(project: Path) -> None:
    done = run("Parity", project, BEFORE=str(project), COMMAND="python src/none.py")
    assert done.returncode == 2
    assert "could not run" in (project / "summary").read_text()
