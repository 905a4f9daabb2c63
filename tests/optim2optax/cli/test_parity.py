"""`optim2optax parity`, and `pytest --parity` to which it is a front."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree as ET

import jax
import pytest

from codemods import Source, migrate
from optim2optax.legacy_wheel import WHEEL_VARIABLE
from optim2optax.wording import command_to_install
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import notebook
from tests.optim2optax.processes import Done, environment, run_python
from tests.optim2optax.programs import LEGACY as PROGRAM
from tests.optim2optax.repositories import commit_all, git
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("legacy_wheel", "settings_of_jax")

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
LEGACY = """
    from flax import optim

    def create(params, config):
        return optim.Adam(config.lr, beta2=0.99).create(params)

    def create_other(params, config):
        return optim.Momentum(config.lr).create(params)
    """
SCENARIO = """\
def run(module):
    optimizer = module.create_optimizer({"w": 0.5})
    yield optimizer
    for _ in range(10):
        optimizer = module.train_step(optimizer, {"w": 1.0})[0]
        yield optimizer
"""
QUICK = ("--platform", "cpu", "--steps", "20")


def started(
    *words: str, cwd: Path, module: str = "optim2optax", **variables: str
) -> Done:
    """The command in a process of its own."""
    changed = environment(PYTHONWARNINGS="ignore", **variables)
    return run_python("-m", module, *words, cwd=cwd, env=changed)


@pytest.fixture
def repository(project: Path, run: Run) -> Path:
    """A repository whose last commit is legacy code, and whose working tree is migrated."""
    (project / "train.py").write_text(dedent(LEGACY))
    commit_all(project)
    assert run("rewrite", ".").exit_code == 0
    return project


@pytest.mark.usefixtures("judged")
def test_helpers_of_several_files_in_a_new_module(project: Path, run: Run) -> None:
    for name in ("one", "other"):
        text = "from flax import optim\n\nrule = optim.LAMB(0.1)\n"
        (project / f"{name}.py").write_text(text)
    commit_all(project)
    ahead = run("parity", *QUICK, ".")
    assert run("rewrite", ".").exit_code == 0
    assert len([*project.glob("*.py")]) == 3
    after = run("parity", *QUICK, "--before", "HEAD", ".")
    for found in (ahead, after):
        assert (found.exit_code, found.stderr) == (0, "")
        assert "2 cases: 0 identical, 2 equivalent" in found.stdout


def test_a_command_repeats_each_case_as_it_was(repository: Path, run: Run) -> None:
    """With the old side as it was, whatever has become of the branch."""
    (repository / "scenario.py").write_text(
        'module = "train.py"\n\n\ndef run(module):\n    yield module.RATE\n'
    )
    code = (repository / "train.py").read_text()
    (repository / "train.py").write_text(f"RATE = 0.1\n{code}")
    words = (*QUICK, "--before", "HEAD", "-k", "not Momentum", "--json", "parity.json")
    command = ("--", "./no-such-program", "--all")
    assert run("parity", *words, ".", *command).exit_code == 2
    git(repository, "commit", "-qam", "new")

    cases = json.loads((repository / "parity.json").read_text())["cases"]
    verdicts = {case["level"]: case["verdict"] for case in cases}
    assert verdicts.pop("optimizer") == "equivalent"
    assert verdicts == {"scenario": "could_not_run", "command": "could_not_run"}
    for case in cases:
        done = run(*shlex.split(case["reproduction"])[1:])
        number = int(done.exit_code == 0)
        assert f"1 case: 0 identical, {number} equivalent" in done.stdout
        assert case["reason"].partition(":")[0] in done.stdout


@pytest.mark.thorough
def test_packages_are_not_imported(project: Path, run: Run) -> None:
    """What a package or a `conftest.py` imports may need the whole old world; none of it is run."""
    package = project / "lab" / "agents"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        for name in ("__init__.py", "conftest.py"):
            (folder / name).write_text("import what_is_not_installed\n")
    (package / "train.py").write_text(
        "from flax import optim\n\n\ndef create(params):\n    return optim.GradientDescent(0.1).create(params)\n"
    )
    paths = ("lab", "lab/agents/train.py")
    outputs = [run("parity", *QUICK, path).output for path in paths]
    for output in (*outputs, started("parity", *QUICK, ".", cwd=project).stdout):
        assert "1 case: 1 identical" in output, output


@pytest.mark.thorough
def test_the_code_as_it_is_now_against_what_it_was(
    repository: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # several jobs have their own
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    words = ("parity", *QUICK, "--before", "HEAD")
    result = run(*words, ".")
    assert result.exit_code == 0
    told = "2 of 2 optimizers of the old tree are paired with the new one"
    assert told in result.stdout

    path = repository / "train.py"
    path.write_text(path.read_text().replace("b2=0.99", "b2=0.98"))
    done = started(*words, "--jobs", "2", ".", cwd=repository)
    assert done.returncode == 1
    assert "different" in done.stdout
    assert "what departs: moments" in done.stdout

    made = "optax.adam(config.lr, b2=0.98)"
    path.write_text(path.read_text().replace(made, "make(config)"))
    result = run(*words, "-k", "Adam", ".")
    assert result.exit_code == 2
    assert "the new tree has no transformation at this place" in result.stdout


ABSENT: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "gpu": ("gpu", ("--platform", "gpu"), {}),
    "tpu": ("tpu", ("--platform", "tpu"), {}),
    "by JAX_PLATFORMS": ("gpu", (), {"JAX_PLATFORMS": "cuda"}),
}


@pytest.mark.parametrize(
    ("platform", "words", "variables"), thinned(ABSENT, "gpu", "by JAX_PLATFORMS")
)
def test_a_platform_that_is_not_there_is_no_cpu(
    platform: str, words: tuple[str, ...], variables: dict[str, str], project: Path
) -> None:
    if jax.default_backend() == platform:
        pytest.skip("it is there")
    (project / "train.py").write_text(dedent(LEGACY))
    done = started("parity", *words, "train.py", cwd=project, **variables)
    assert done.returncode == 2
    assert f"JAX finds no {platform} here: " in done.stderr
    assert "pip install 'jax[" in done.stderr
    assert "Traceback" not in done.stderr
    assert "identical" not in done.stdout


def test_a_scenario_of_code_that_is_not_migrated_yet(project: Path, run: Run) -> None:
    """The new side is what `rewrite` would make of it."""
    for name, module in (("whole", "train.py"), ("beside", None)):
        (project / name).mkdir()
        (project / name / (module or "before.py")).write_text(PROGRAM)
        told = f"module = {module!r}\n\n\n" if module else ""
        (project / name / "scenario.py").write_text(told + SCENARIO)
    result = run("parity", *QUICK, "-k", "scenario", ".")
    lines = [line.split()[:2] for line in result.output.splitlines()]
    assert ["identical", "beside"] in lines
    assert ["identical", "whole"] in lines
    assert result.exit_code == 0
    assert (project / "whole" / "train.py").read_text() == PROGRAM


@pytest.mark.thorough
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no `-P`")
def test_several_processes_import_nothing_of_the_current_folder(project: Path) -> None:
    text = "from flax import optim\noptimizer = optim.GradientDescent(0.1)\n"
    (project / "train.py").write_text(text)
    for name in ("json", "pytest"):
        (project / f"{name}.py").write_text("raise RuntimeError\n")
    words = ("-P", "-m", "optim2optax", "parity", *QUICK, "--jobs", "2", ".")
    done = run_python(*words, cwd=project)
    assert "1 case: 1 identical" in done.stdout, done.stdout + done.stderr


@pytest.mark.thorough
def test_scenarios_and_commands_with_an_old_tree(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, name in ((before, "before.py"), (after, "after.py")):
        folder.mkdir()
        shutil.copy(FIXTURES / "train_script" / name, folder / "train.py")
    scenario = (FIXTURES / "train_script" / "scenario.py").read_text()
    told = scenario.replace('"""\n', '"""\n\nmodule = "train.py"\n', 1)
    (after / "scenario.py").write_text(told)
    (after / "data").mkdir()
    options = ("--before", str(before), "--timeout", "600", "--link", "data")
    words = (*options, ".", "--", "python", "train.py", "--steps", "12")
    done = started("parity", *QUICK, "--devices", "2", *words, cwd=after)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "python train.py --steps 12" in done.stdout
    assert "3 cases" in done.stdout


REFUSED = {
    "a wheel that is not the published one": (["--legacy-wheel", "other", "."], "not the published wheel"),
    "an interpreter that is none": (["--legacy-python", "other", "."], "other cannot be run"),
    "an environment where something else is": (["--create-legacy-env", "."], ". is not empty, and no environment"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "why"), REFUSED.values(), ids=REFUSED)
def test_another_old_side_that_is_none(
    words: list[str], why: str, project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "other").write_bytes(b"PK")
    monkeypatch.setenv(WHEEL_VARIABLE, "")
    result = run("parity", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert why in result.stderr


@pytest.mark.parametrize("words", [("parity", "."), ("rewrite", "--verify", ".")])
def test_without_the_extra(
    words: tuple[str, ...], project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "train.py").write_text(PROGRAM)
    monkeypatch.setitem(sys.modules, "optax", None)
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "parity needs optax: " in result.stderr
    assert result.stderr.rstrip().endswith(command_to_install("parity"))
    assert (project / "train.py").read_text() == PROGRAM


NO_OLD_TREE = {
    "not there": ("no-such-branch", ".", "no-such-branch is neither a folder nor a revision of "),
    "not there, for a command": ("none", "-- python train.py", "none is neither a folder nor a revision of "),
    "without what is asked for": ("old", "train.py", "the old code has no train.py: the folder of --before has to"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "words", "why"), NO_OLD_TREE.values(), ids=NO_OLD_TREE
)
def test_no_old_tree(
    before: str, words: str, why: str, project: Path, run: Run
) -> None:
    (project / "old").mkdir()
    (project / "train.py").write_text(PROGRAM)
    result = run("parity", "--before", before, *words.split())
    assert result.exit_code == 2
    assert why in result.output
    assert "Traceback" not in result.output


def test_a_scenario_need_not_be_in_the_old_tree(project: Path, run: Run) -> None:
    (project / "old").mkdir()
    (project / "old" / "train.py").write_text(PROGRAM)
    (project / "train.py").write_text(PROGRAM)
    (project / "scenario.py").write_text(f'module = "train.py"\n\n\n{SCENARIO}')
    assert run("rewrite", "train.py").exit_code == 0
    result = run("parity", "--before", "old", "scenario.py")
    assert result.exit_code == 0, result.output
    assert "1 case: 1 identical" in result.stdout


@pytest.mark.usefixtures("judged")
def test_a_module_of_the_program_that_is_called_scenario_drives_nothing(
    project: Path, run: Run
) -> None:
    (project / "train.py").write_text(PROGRAM)
    (project / "scenario.py").write_text("NAMES = ('easy', 'hard')\n")
    result = run("parity", ".")
    assert result.exit_code == 0, result.output
    assert "1 case: " in result.stdout


def test_scenarios_of_every_kind(project: Path, run: Run) -> None:
    """Of notebooks, with several new sides, and two that are none."""
    [result] = migrate([Source("train.py", PROGRAM.encode())])
    new = result.after.decode()
    for name in ("notebooks", "variants", "unfinished", "unnamed"):
        (project / name).mkdir()
        (project / name / "scenario.py").write_text(SCENARIO)
    (project / "unfinished" / "scenario.py").write_text(SCENARIO + "(")
    unnamed = f'module = "train" + ".py"\n{SCENARIO}'
    (project / "unnamed" / "scenario.py").write_text(unnamed)
    for name, text in {"before": PROGRAM, "after": new}.items():
        (project / "variants" / f"{name}.py").write_text(text)
        (project / "notebooks" / f"{name}.ipynb").write_text(notebook(text))
    slower = new.replace("0.1", "0.01")
    (project / "variants" / "after_slower.py").write_text(slower)

    done = run("parity", "-k", "not Momentum", "--json", "parity.json", ".")
    assert (done.exit_code, done.stderr) == (2, "")
    report = json.loads((project / "parity.json").read_text())
    cases = {case["name"]: case for case in report["cases"]}
    assert {name: case["verdict"] for name, case in cases.items()} == {
        "notebooks": "identical",
        "unfinished": "could_not_run",
        "unnamed": "could_not_run",
        "variants": "identical",
        "variants (slower)": "different",
    }
    why = "SyntaxError: '(' was never closed (scenario.py, line 7)"
    assert cases["unfinished"]["reason"] == why
    why = "`module = 'train' + '.py'` is not the path of a file"
    assert why in cases["unnamed"]["reason"]


@pytest.mark.thorough
def test_a_baseline_is_kept_and_compared_with_later(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the old code, and without the wheel that has `flax.optim`."""
    [result] = migrate([Source("train.py", PROGRAM.encode())])
    new = result.after.decode()
    for name, text in {"before": PROGRAM, "after": new, "scenario": SCENARIO}.items():
        (project / f"{name}.py").write_text(text)
    assert run("parity", "-k", "scenario", "--save", "old.npz", ".").exit_code == 0

    (project / "before.py").unlink()
    monkeypatch.setenv(WHEEL_VARIABLE, "not-there.whl")
    done = run("parity", "--against", "old.npz", ".")
    assert done.exit_code == 0, done.output
    assert "1 case: 1 identical" in done.stdout
    assert "note: The old side is that of " in done.stdout

    (project / "after.py").write_text(new.replace("0.1", "0.01"))
    assert run("parity", "--against", "old.npz", ".").exit_code == 1

    (project / "before").mkdir()
    (project / "other").mkdir()
    (project / "scenario.py").rename(project / "other" / "scenario.py")
    (project / "after.py").rename(project / "other" / "after.py")
    done = run("parity", "--against", "old.npz", ".")
    assert done.exit_code == 2
    assert "old.npz has no scenario called other" in done.stdout

    done = run("parity", "--against", "old.npz", "before")
    assert done.exit_code == 2
    assert done.stderr.count("there is no scenario here to compare with old.npz") == 1

    (project / "old.npz").write_bytes(b"no baseline")
    done = run("parity", "--against", "old.npz", ".")
    assert done.exit_code == 2
    assert "old.npz is no file that --save wrote" in done.stdout


def test_a_scenario_without_old_code(project: Path, run: Run) -> None:
    (project / "scenario.py").write_text("def run(module):\n    yield 0\n")
    result = run("parity", *QUICK, ".")
    assert result.exit_code == 2
    assert "1 could not run" in result.stdout
    assert "before.py" in result.stdout


@pytest.mark.usefixtures("judged")
def test_verify_writes_what_is_proven(project: Path, run: Run) -> None:
    (project / "train.py").write_text(dedent(LEGACY))
    (project / "odd.py").write_text(
        "from flax import optim\n\n\ndef create(params, groups):\n"
        "    return optim.Adam(*[0.1]).create(params), optim.Momentum(f'{0.1}').create(params)\n"
    )
    result = run("rewrite", "--verify", "--jobs", "1", ".")

    assert result.exit_code == 1
    assert result.stderr == "Proving 4 optimizers …\n"
    assert "optax.adam(config.lr, b2=0.99)" in (project / "train.py").read_text()
    assert "optim.Momentum(f'{0.1}')" in (project / "odd.py").read_text()
    assert "FO920" in result.stdout


WRONG = {
    "nothing to do": ([], "give files or directories"),
    "a command without an old side": (["--", "python", "train.py"], "a command needs --before"),
    "what a command leaves behind without one": (["--compare", "metrics.json", "."], "are of a command behind --"),
    "lines by what is no expression": (
        ["--compare-lines", "loss (", "--before", ".", "--", "python", "train.py"],
        "--compare-lines 'loss ('",
    ),
    "a path that is not there": (["nowhere.py"], "does not exist"),
    "a baseline by several processes": (["--save", "old.npz", "--jobs", "2", "."], "give neither --jobs nor --against"),
    "a platform that is none": (["--platform", "abacus", "."], "abacus"),
    "a filter that is none": (["-k", "Adam or", "."], "-k 'Adam or': invalid syntax"),
    "a filter that calls": (["-k", "Adam (Momentum)", "."], "-k 'Adam (Momentum)': invalid syntax"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage(words: list[str], message: str, run: Run) -> None:
    result = run("parity", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_nothing_to_compare(project: Path, run: Run) -> None:
    (project / "model.py").write_text("import jax\n")
    result = run("parity", "--json", "parity.json", ".")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "There is no legacy optimizer" in result.stdout
    assert not (project / "parity.json").exists()


NOTHING = {
    "a filter that fits nothing": (["-k", "Adamax", "."], "no case fits -k Adamax, so nothing is proven"),
    "an old tree without legacy code": (
        ["--before", "old", "."],
        "old has no legacy optimizer here, so nothing is proven",
    ),
    "a filter in several processes": (["-k", "Adamax", "--jobs", "2", "."], "no case fits -k Adamax"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "why"), thinned(NOTHING, *[*NOTHING][:2]))
def test_a_gate_that_compares_nothing_does_not_pass(
    words: list[str], why: str, project: Path, run: Run
) -> None:
    (project / "old").mkdir()
    (project / "old" / "train.py").touch()
    if "-k" in words:
        (project / "train.py").write_text(dedent(LEGACY))
    done = run("parity", *QUICK, *words)
    assert (done.exit_code, done.stdout.count("nothing proven")) == (2, 0)
    assert why in done.stderr


@pytest.mark.usefixtures("judged")
def test_every_report_of_code_that_is_not_migrated_yet(project: Path, run: Run) -> None:
    """Nothing of the project is imported or written."""
    still = dedent(LEGACY).replace("optim.Momentum(config.lr)", "optim.Momentum(0.0)")
    (project / "train.py").write_text(still)
    (project / "test_of_the_user.py").write_text("raise AssertionError\n")
    names = ("json", "junit", "markdown", "html")
    reports = {name: project / f"parity.{name}" for name in names}
    words = [f"--{name}={path}" for name, path in reports.items()]
    done = run("parity", *QUICK, *words, ".")

    assert done.exit_code == 2, done.output
    assert (project / "train.py").read_text() == still
    verdicts = [line for line in done.stdout.splitlines() if " train.py:" in line]
    assert verdicts[0].startswith("nothing proven  train.py:8 Momentum")
    why = "No parameter ever moved, as with a learning rate of zero, so nothing is proven."
    for text in (done.stdout, *(path.read_text() for path in reports.values())):
        assert why in text
        assert "train.py:5 Adam" in text
    content = json.loads(reports["json"].read_text())
    verdicts = [case["verdict"] for case in content["cases"]]
    assert verdicts == ["nothing_proven", "equivalent"]
    assert content["environment"]["platform"] == "cpu"
    suite = ET.parse(reports["junit"]).getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    [failure] = suite.findall(".//failure")
    assert "nothing proven" in str(failure.get("message"))
    assert "optax.adam(config.lr, b2=0.99)" in reports["html"].read_text()


@pytest.mark.usefixtures("judged")
def test_nothing_unproven_is_written(project: Path, run: Run) -> None:
    """Where no rate is, every optimizer is the same as every other."""
    program = dedent(LEGACY).replace("config.lr", "0.0")
    (project / "train.py").write_text(program)
    assert run("rewrite", "--verify", "--jobs", "1", ".").exit_code == 1
    assert (project / "train.py").read_text() == program


@pytest.mark.thorough
def test_as_a_part_of_the_users_tests(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(LEGACY))
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    words = ("--parity", "-q", "-k", "Adam or own", ".")
    done = started(*words, cwd=tmp_path, module="pytest")
    assert done.returncode == 0, done.stdout
    assert "2 passed, 1 deselected" in done.stdout
    assert "train.py:5 Adam" in done.stdout
    assert "passed" in started("-q", ".", cwd=tmp_path, module="pytest").stdout
