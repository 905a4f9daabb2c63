"""`optim2optax rewrite` and what is declared: told by default, changed with `--modernize`, and only where code has moved."""

import json
from pathlib import Path

import pytest
from packaging.version import Version

from codemods.removed import table
from optim2optax.dependencies.needs import JAX, LOWEST
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import notebook
from tests.optim2optax.processes import run_python
from tests.optim2optax.programs import LEGACY, MODERN

OLD = "flax==0.3.4\njax>=0.2.5,<0.3\n"
NEW = "flax>=0.8.0\noptax>=0.2.4\njax>=0.4.27\n"
NOTHING = "Nothing to migrate in 1 file.\n"
READERS = ("packaging", "tomlkit", "libcst")


def write(project: Path, **files: str) -> None:
    for name, content in files.items():
        found = name.replace("__", "/").replace("_txt", ".txt").replace("_py", ".py")
        path = project / found
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


NOTHING_TO_SAY = {
    "no optax": ("import jax\n", OLD),
    "no Flax": (MODERN, "numpy<1.20\n"),
    "new versions": (MODERN, NEW),
    "new versions already": (LEGACY, NEW),
    "nothing too old": (MODERN, "flax\njax[cuda111]\n"),
}


@pytest.mark.parametrize(
    ("code", "declared"), NOTHING_TO_SAY.values(), ids=NOTHING_TO_SAY
)
def test_nothing_to_say(project: Path, run: Run, code: str, declared: str) -> None:
    write(project, train_py=code, requirements_txt=declared)
    assert "requirements.txt" not in run("rewrite", "--check", ".").stdout
    assert (project / "requirements.txt").read_text() == declared


def test_it_is_told(project: Path, run: Run) -> None:
    write(project, src__train_py=LEGACY, requirements_txt=OLD)
    result = run("rewrite", "src")
    what = "flax==0.3.4, jax>=0.2.5,<0.3, no optax"
    told = f"The new code needs other dependencies than those in requirements.txt ({what}): see --modernize."
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == told
    assert (project / "requirements.txt").read_text() == OLD

    assert run("rewrite", "--check", "src").stdout.splitlines()[-1] == told
    again = json.loads(run("rewrite", "--output-format", "json", "src").stdout)
    [file] = again["files"]
    assert (file["path"], file["changed"]) == ("requirements.txt", False)
    assert file["sites"] == []
    assert [hint["code"] for hint in file["hints"]] == ["FO851", "FO852", "FO852"]


@pytest.mark.parametrize("steps", ["src", "src/train.py", ".", "src .", ". src"])
def test_it_is_changed(project: Path, run: Run, steps: str) -> None:
    words = ("rewrite", "--modernize", *steps.split())
    gpu = "jaxlib==0.1.67\n"
    write(
        project, src__train_py=LEGACY, requirements_txt=OLD, requirements__gpu_txt=gpu
    )
    checked = run(*words, "--check")
    assert checked.exit_code == 1
    assert (project / "requirements.txt").read_text() == OLD
    shown = run(*words, "--diff").stdout
    assert "+++ b/requirements.txt\n@@ -1,2 +1,3 @@\n-flax==0.3.4\n" in shown
    told = run(*words).stdout
    assert "requirements.txt: 3 sites rewritten\n" in told
    assert "9 sites in 3 files: 9 rewritten, 0 suppressed, 0 unresolved\n" in told
    assert (project / "requirements.txt").read_text() == NEW
    assert (project / "requirements" / "gpu.txt").read_text() == "jaxlib>=0.4.27\n"
    assert run(*words, "--check").stdout == NOTHING


def test_it_is_changed_after_an_earlier_run(project: Path, run: Run) -> None:
    write(project, src__train_py=LEGACY, requirements_txt="flax\njax\n")
    run("rewrite", "src")
    assert run("rewrite", "--modernize", "src").exit_code == 0
    assert (project / "requirements.txt").read_text() == "flax\noptax\njax\n"


def test_what_is_left(project: Path, run: Run) -> None:
    declared = "flax @ git+https://example.org/flax\n"
    write(project, train_py=LEGACY, requirements_txt=declared)
    told = run("rewrite", "--check", ".").stdout.splitlines()[-1]
    by_hand = "1 dependency to see to by hand in requirements.txt"
    assert told == f"{by_hand}: --modernize tells which."
    result = run("rewrite", "--modernize", ".")
    assert result.exit_code == 1
    told = "requirements.txt:1:1: FO951 `flax` comes from a place of its own"
    assert told in result.stdout


def test_what_commands_install_is_told(project: Path, run: Run) -> None:
    install = "  - run: pip install flax==0.5\n"
    write(project, train_py=LEGACY, Makefile="test:\n\tpip install 'jax<0.4'\n")
    write(project, **{".github__workflows__ci.yml": install})
    told = run("rewrite", "--modernize", ".").stdout
    assert ".github/workflows/ci.yml:1:22: FO955 The new code needs Flax 0.8.0" in told
    assert "Makefile:2:14: FO955 The new code needs JAX 0.4.27" in told


def test_what_a_configuration_names_is_told_until_it_is_changed(
    project: Path, run: Run
) -> None:
    write(project, train_py=LEGACY, **{"conf__ci.yml": "run: pytest  # of flax\n"})
    write(project, **{"conf__adam.yaml": "optimizer:\n  _target_: flax.optim.Adam\n"})
    write(project, **{"run.gin": "# import flax.optim\nT.opt = @flax.optim.Adam\n"})
    line = "conf/adam.yaml:2:13: FO956 `flax.optim.Adam` is named here"
    for _ in range(2):
        told = run("rewrite", ".")
        assert told.exit_code == 0
        assert line in told.stdout
        assert "also at run.gin:2" in told.stdout
        assert told.stdout.count("FO956") == 1
    for form in ("github", "sarif", "json"):
        assert "FO956" in run("rewrite", "--output-format", form, ".").stdout
    assert line in run("rewrite", "--modernize", ".").stdout
    write(project, **{"conf__adam.yaml": "optimizer:\n  _target_: optax.adam\n"})
    assert line not in run("rewrite", ".").stdout


def test_what_requirements_include_is_changed(project: Path, run: Run) -> None:
    write(project, src__train_py=LEGACY, requirements_txt="-r base.in\nnumpy\n")
    write(project, **{"base.in": "-r more/old.lock  # all\n", "more__old.lock": OLD})
    write(project, **{"more__other.lock": OLD})
    assert "\nflax==0.3.4: more/old.lock:1\n" in run("doctor", "src").stdout
    run("rewrite", "--modernize", "src")
    assert (project / "more" / "old.lock").read_text() == NEW
    assert (project / "more" / "other.lock").read_text() == OLD


def test_only_where_code_has_moved(project: Path, run: Run) -> None:
    """Of two projects in one folder, and of what is beside code without optimizers, nothing is touched."""
    write(project, a__train_py=LEGACY, b__train_py="import jax\n", docs__conf_py="")
    for name in ("a", "b", "docs"):
        write(project, **{f"{name}__requirements_txt": OLD})
    write(project, a__docker__requirements_txt="flax<0.4\n")
    run("rewrite", "--modernize", ".")
    changed = [path for path in project.rglob("*.txt") if "optax" in path.read_text()]
    folders = {str(path.parent.relative_to(project)) for path in changed}
    assert folders == {"a/docker", "a"}


def test_optax_is_not_added_where_nothing_uses_it(project: Path, run: Run) -> None:
    write(project, train_py=OLDER, requirements_txt="flax==0.3.4\njax<0.3\n")
    run("rewrite", "--modernize", ".")
    assert (project / "requirements.txt").read_text() == "flax>=0.8.0\njax>=0.4.27\n"


NEWER = "import jax\n\nx64 = jax.experimental.enable_x64(True)\n"
"""What takes the place of this is there since JAX 0.8."""

OLDER = "import jax\n\nsums = jax.tree_map(sum, {})\n"


def declared_for(project: Path, run: Run, code: str, **files: str) -> list[str]:
    """What is declared once code is rewritten, and again as nothing is left to do, nor anything lowered."""
    write(project, train_py=code, **files)
    run("rewrite", "--modernize", ".")
    paths = [path for path in sorted(project.iterdir()) if path.suffix != ".py"]
    declared = [path.read_text() for path in paths]
    assert run("rewrite", "--modernize", "--check", ".").stdout == NOTHING
    return declared


DECLARED = {
    "no version": (OLDER, "jax\n", "jax\n"),
    "a lower bound": (OLDER, "jax>=0.3\n", "jax>=0.3\n"),
    "an upper bound": (OLDER, "jax<0.9\n", "jax<0.9\n"),
    "a higher bound": (NEWER, "jax>=0.9\n", "jax>=0.9\n"),
    "a pin that is late enough": (NEWER, "jax==0.8.0\n", "jax==0.8.0\n"),
    "pins": (NEWER, "jax<0.3\njaxlib==0.1.67\n", "jax>=0.8.0\njaxlib>=0.8.0\n"),
    "a bound": (NEWER, "jax>=0.4.27  # new\njaxlib\n", "jax>=0.8.0  # new\njaxlib\n"),
    "a range": (NEWER, "jax>=0.4.27,<0.10\n", "jax>=0.8.0,<0.10\n"),
    "no bound": (NEWER, "jax[cuda12] != 0.9.0\n", "jax[cuda12] >= 0.8.0,!= 0.9.0\n"),
    "none": (NEWER, "jax[cpu]\nnumpy<2\nscipy>=1.9\n", "jax[cpu]>=0.8.0\nnumpy>=2.0\nscipy>=1.9\n"),
}  # fmt: skip
"""What is declared before, and with what replaces removed names."""


@pytest.mark.parametrize(
    ("code", "declared", "expected"), DECLARED.values(), ids=DECLARED
)
def test_what_replaces_removed_names_is_there(
    project: Path, run: Run, code: str, declared: str, expected: str
) -> None:
    assert declared_for(project, run, code, requirements_txt=declared) == [expected]


def test_it_is_told_which_name_needs_a_later_version(project: Path, run: Run) -> None:
    write(project, train_py=NEWER, requirements_txt="jax\n")
    told = run("rewrite", "--modernize", "--output-format", "github", "--check", ".")
    what = "What replaces `jax.experimental.enable_x64` needs JAX 0.8.0 or later."
    assert f"title=FO852::would be rewritten: {what}" in told.stdout


def test_a_name_that_is_left_needs_nothing(project: Path, run: Run) -> None:
    code = NEWER.replace("(True)", "(*given)")
    write(project, train_py=code, requirements_txt="jax\n")
    run("rewrite", "--modernize", ".")
    assert (project / "requirements.txt").read_text() == "jax\n"


def test_python_goes_with_a_later_version(project: Path, run: Run) -> None:
    toml = '[project]\nname = "lab"\nrequires-python = ">=3.8"\ndependencies = ["jax<0.3"]\n'
    later = toml.replace("3.8", "3.11").replace("<0.3", ">=0.8.0")
    assert declared_for(project, run, NEWER, **{"pyproject.toml": toml}) == [later]


def test_an_image_and_a_lock_file_are_too_old_for_a_later_version(
    project: Path, run: Run
) -> None:
    locked = '[[package]]\nname = "jax"\nversion = "0.4.30"\n'
    write(project, train_py=NEWER, Dockerfile="FROM python:3.10\n# for JAX\n")
    write(project, **{"uv.lock": locked})
    said = run("rewrite", "--modernize", ".").stdout
    assert "Dockerfile:1:6: FO955 The new code needs Python 3.11 or later." in said
    what = "What replaces `jax.experimental.enable_x64` needs JAX 0.8.0 or later."
    assert f"uv.lock:3:12: FO950 {what}" in said


def test_what_jax_asks_for_is_known_of_each_version_that_is_needed() -> None:
    rows = [row for row in table().values() if row.module.partition(".")[0] == "jax"]
    since = {row.since for row in rows if row.since}
    lowest = Version(LOWEST["jax"])
    assert {version for version in since if Version(version) > lowest} == set(JAX)


def test_what_is_ignored_or_excluded(project: Path, run: Run) -> None:
    write(project, train_py=LEGACY, requirements_txt=OLD, dev_requirements_txt=OLD)
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("/requirements.txt\n")
    run("rewrite", "--modernize", "--exclude", "dev-*", "--exclude", "dev_*", ".")
    assert (project / "requirements.txt").read_text() == OLD
    assert (project / "dev_requirements.txt").read_text() == OLD


def test_a_notebook_is_code_too(project: Path, run: Run) -> None:
    text = notebook("!pip install flax==0.3.4", LEGACY)
    (project / "train.ipynb").write_text(text)
    told = run("rewrite", "--check", "--output-format", "json", ".").stdout
    [hinted, *_] = json.loads(told)["files"]
    assert [hint["code"] for hint in hinted["hints"]] == ["FO851", "FO852"]
    told = run("rewrite", "--modernize", ".").stdout
    assert told.startswith("train.ipynb: 7 sites rewritten\n")
    cells = json.loads((project / "train.ipynb").read_text())["cells"]
    installs, code = ("".join(found["source"]) for found in cells)
    assert installs == '!pip install "flax>=0.8.0" "optax>=0.2.4"'
    assert "optax.sgd(" in code


@pytest.mark.parametrize("paths", [".", "src setup.py", "src"])
def test_a_setup_py_is_code_too(project: Path, run: Run, paths: str) -> None:
    setup = "from setuptools import setup\n\nsetup(install_requires=['flax==0.3.4'])\n"
    write(project, src__train_py=LEGACY, setup_py=setup)
    result = run("rewrite", "--modernize", *paths.split())
    assert result.stdout.count("setup.py: 2 sites rewritten\n") == 1
    assert "7 sites in 2 files: 7 rewritten" in result.stdout
    assert "['flax>=0.8.0', 'optax>=0.2.4']" in (project / "setup.py").read_text()


@pytest.mark.parametrize(
    ("option", "expected"), [("--no-modernize", 0), ("--modernize", 1)]
)
def test_a_file_that_cannot_be_read(
    run: Run, unprivileged: Path, option: str, expected: int
) -> None:
    write(unprivileged, train_py=LEGACY, requirements_txt=OLD)
    (unprivileged / "requirements.txt").chmod(0)
    result = run("rewrite", option, unprivileged / "train.py")
    assert result.exit_code == expected
    is_told = "requirements.txt: error: cannot be read" in result.stdout
    assert is_told == (expected == 1)


@pytest.mark.parametrize("output_format", ["github", "sarif"])
def test_other_formats(project: Path, run: Run, output_format: str) -> None:
    write(project, train_py=LEGACY, requirements_txt=OLD)
    words = ("rewrite", "--modernize", "--check", "--output-format", output_format)
    result = run(*words, ".")
    assert all(code in result.stdout for code in ("FO851", "FO852"))


@pytest.mark.parametrize(
    ("code", "declared", "expected"),
    [(MODERN, "numpy\n", False), ("import jax\n", OLD, False), (MODERN, OLD, True)],
    ids=["no Flax", "no optax", "both"],
)
def test_a_run_imports_no_more_than_it_needs(
    project: Path, code: str, declared: str, expected: bool
) -> None:
    write(project, train_py=code, requirements_txt=declared)
    program = (
        "import sys\n"
        "from optim2optax.cli import application\n"
        "application(['rewrite', '.'], standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    found = {*run_python("-c", program).stderr.splitlines()[-1].split()} & {*READERS}
    assert found == ({"packaging"} if expected else set())
