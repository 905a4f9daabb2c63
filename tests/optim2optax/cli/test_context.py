"""Given some files, the rest of the project is read, so no optimizer is migrated in one half of its files alone."""

import json
from pathlib import Path

import pytest

from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import notebook
from tests.optim2optax.processes import run_python
from tests.optim2optax.programs import LEGACY, MODERN, STEPS, TRAIN, UNPARSABLE

EVAL = """\
from flax import optim

from steps import step


def fine_tune(params, grads):
    return step(optim.Momentum(0.1, 0.9).create(params), grads).target
"""
MISSING = (
    "train.py:7:17: FO931 This optimizer is used in steps.py too, which was not named."
)
ALONE = "5 sites in 1 file: 5 rewritten, 0 suppressed, 0 unresolved\n"


def texts(folder: Path) -> dict[str, str]:
    """The code and the notebooks of a folder."""
    files = [*folder.rglob("*.py"), *folder.rglob("*.ipynb")]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


@pytest.fixture
def tree(project: Path) -> Path:
    """A repository of two files with one optimizer, and a third with one of its own."""
    (project / ".git").mkdir()
    (project / "train.py").write_text(TRAIN)
    (project / "steps.py").write_text(STEPS)
    (project / "other.py").write_text(LEGACY)
    return project


def test_an_optimizer_of_other_files_too_stays(tree: Path, run: Run) -> None:
    before = texts(tree)
    result = run("rewrite", "train.py")
    assert result.exit_code == 1
    assert result.stdout == (
        f"{MISSING}\n"
        "    fix: Name steps.py as well, or run `optim2optax rewrite --with-related train.py`.\n"
        "    waiting for this: 3 sites at train.py:1, 7, 10\n"
        "\n"
        "4 sites in 1 file: 0 rewritten, 0 suppressed, 4 unresolved\n"
    )
    assert texts(tree) == before


def test_what_the_report_says_to_name_is_enough(tree: Path, run: Run) -> None:
    result = run("rewrite", "steps.py", "train.py")
    assert result.stdout == (
        "steps.py: 1 site rewritten\n"
        "train.py: 4 sites rewritten\n"
        "5 sites in 2 files: 5 rewritten, 0 suppressed, 0 unresolved\n"
    )
    assert (tree / "other.py").read_text() == LEGACY


@pytest.mark.parametrize("named", ["train.py", "steps.py"])
def test_related_files_are_written_where_that_is_asked_for(
    tree: Path, run: Run, named: str
) -> None:
    result = run("rewrite", "--with-related", named)
    assert result.exit_code == 0
    assert "5 sites in 2 files: 5 rewritten" in result.stdout
    assert "optim." not in texts(tree)["train.py"]
    assert "apply_gradients(grads=grads)" in texts(tree)["steps.py"]
    assert texts(tree)["other.py"] == LEGACY
    once = texts(tree)
    assert run("rewrite", "--with-related", named).stdout.startswith("Nothing to")
    assert texts(tree) == once


@pytest.mark.parametrize("named", ["train.py", "."])
def test_what_is_excluded_is_read_and_never_written(
    tree: Path, run: Run, named: str
) -> None:
    before = texts(tree)
    words = ("rewrite", "--with-related", "--exclude", "steps.py", named)
    assert MISSING in run(*words).stdout
    after = texts(tree)
    assert (after["train.py"], after["steps.py"]) == (
        before["train.py"],
        before["steps.py"],
    )
    assert (after["other.py"] == LEGACY) == (named == "train.py")


def test_files_related_to_related_files_are_written_too(tree: Path, run: Run) -> None:
    (tree / "eval.py").write_text(EVAL)
    told = run("rewrite", "steps.py").stdout
    assert "is used in eval.py and train.py too, which were not named" in told
    assert "Name eval.py and train.py as well" in told
    result = run("rewrite", "--with-related", "train.py")
    assert "in 3 files" in result.stdout
    assert result.exit_code == 0
    assert "optim." not in texts(tree)["eval.py"]
    assert texts(tree)["other.py"] == LEGACY


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_a_preview_shows_what_would_be_written(
    tree: Path, run: Run, option: str
) -> None:
    before = texts(tree)
    told = run("rewrite", option, "train.py")
    assert told.exit_code == 1
    assert MISSING in told.stdout + told.stderr
    related = run("rewrite", option, "--with-related", "train.py")
    assert related.exit_code == 1
    assert "5 sites in 2 files: 5 would be rewritten" in related.stdout + related.stderr
    assert ("+++ b/steps.py" in related.stdout) == (option == "--diff")
    assert texts(tree) == before


def test_json_lists_what_was_named_and_what_was_written(tree: Path, run: Run) -> None:
    def described(*arguments: str) -> tuple[list[str], dict[str, int], list[str]]:
        words = ("rewrite", "--check", "--output-format", "json", *arguments)
        report = json.loads(run(*words).stdout)
        sites = [site for file in report["files"] for site in file["sites"]]
        related = {path for site in sites for path in site["related"]}
        paths = [file["path"] for file in report["files"]]
        return paths, report["summary"], sorted(related)

    paths, summary, related = described("train.py")
    assert (paths, related) == (["train.py"], ["steps.py"])
    assert (summary["files_scanned"], summary["sites"]) == (1, 4)
    paths, summary, related = described("--with-related", "train.py")
    assert (paths, related) == (["train.py", "steps.py"], [])
    assert (summary["files_scanned"], summary["rewritten"]) == (2, 5)


@pytest.mark.parametrize("output_format", ["github", "sarif"])
def test_other_formats_say_what_to_name(
    tree: Path, run: Run, output_format: str
) -> None:
    told = run("rewrite", "--check", "--output-format", output_format, "train.py")
    assert "FO931" in told.stdout
    assert "This optimizer is used in steps.py too, which was not named." in told.stdout
    assert "optim2optax rewrite --with-related train.py" in told.stdout
    assert "other.py" not in told.stdout
    assert 'uri": "steps.py' not in told.stdout


def test_a_folder_is_not_the_whole_project(tree: Path, run: Run) -> None:
    (tree / "src").mkdir()
    (tree / "src/steps.py").write_text(STEPS)
    (tree / "steps.py").unlink()
    result = run("rewrite", "src")
    told = "src/steps.py:2:12: FO931 This optimizer is used in train.py too"
    assert told in result.stdout
    assert (tree / "src/steps.py").read_text() == STEPS
    result = run("rewrite", "--with-related", "src")
    assert "5 sites in 2 files: 5 rewritten" in result.stdout


def test_standard_input_is_one_of_the_files(tree: Path, run: Run) -> None:
    """What an editor has counts, not what is on the disk."""
    (tree / "train.py").write_text("saved = 'long ago'\n")
    words = ("rewrite", "--stdin-filename", "train.py", "-")
    result = run(*words, stdin=TRAIN.encode())
    assert result.stdout == TRAIN
    assert MISSING in result.stderr
    assert "4 sites in 1 file" in result.stderr
    result = run("rewrite", "--stdin-filename", "new.py", "-", stdin=LEGACY.encode())
    assert "optax" in result.stdout
    # without a name, it is no file of any project
    assert "optax" in run("rewrite", "-", stdin=LEGACY.encode()).stdout
    refused = run("rewrite", "--with-related", "-", stdin=TRAIN.encode())
    assert refused.exit_code == 2
    assert "--with-related needs files" in refused.stderr


def test_notebooks(tree: Path, run: Run) -> None:
    (tree / "train.py").unlink()
    (tree / "train.ipynb").write_text(notebook(TRAIN))
    told = run("rewrite", "steps.py").stdout
    assert "is used in train.ipynb too, which was not named" in told
    assert "is used in steps.py too" in run("rewrite", "train.ipynb").stdout
    result = run("rewrite", "--with-related", "train.ipynb")
    assert "5 sites in 2 files: 5 rewritten" in result.stdout
    assert "TrainState.create" in (tree / "train.ipynb").read_text()


def test_a_notebook_that_cannot_be_read_costs_itself_alone(
    tree: Path, run: Run
) -> None:
    (tree / "study.ipynb").write_text(notebook(f"{LEGACY}\nx = %timeit -o optimizer"))
    result = run("rewrite", "study.ipynb")
    assert result.exit_code == 1
    assert "1 file could not be read" in result.stdout
    assert "FO930" not in result.stdout


def test_ignored_files_are_no_context_and_excluded_ones_are(
    tree: Path, run: Run
) -> None:
    (tree / ".gitignore").write_text("steps.py\n")
    assert "4 would be rewritten" in run("rewrite", "--check", "train.py").stdout
    (tree / ".gitignore").unlink()
    excluded = run("rewrite", "--check", "--exclude", "steps.py", "train.py")
    assert MISSING in excluded.stdout
    (tree / "pyproject.toml").write_text("[tool.optim2optax]\nexclude = ['steps.py']\n")
    assert MISSING in run("rewrite", "--check", "train.py").stdout
    named = run("rewrite", "steps.py", "other.py").stdout
    assert named == f"other.py: 5 sites rewritten\n{ALONE}"
    assert (tree / "steps.py").read_text() == STEPS


def test_the_nearest_project_counts(project: Path, run: Run) -> None:
    """A folder around it is not read, even if it is one, too."""
    inner = project / "inner"
    (inner / "tools").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "train.py").write_text(TRAIN)
    (inner / "steps.py").write_text(STEPS)
    assert "used in train.py too" in run("rewrite", "inner/steps.py").stdout
    (inner / "pyproject.toml").touch()
    (inner / "tools/fine_tune.py").write_text(EVAL)
    told = run("rewrite", "inner/steps.py").stdout
    assert "is used in inner/tools/fine_tune.py too, which was not named" in told


def test_without_a_project_only_what_was_named_is_read(project: Path, run: Run) -> None:
    (project / "train.py").write_text(TRAIN)
    (project / "steps.py").write_text(STEPS)
    assert "FO931" not in run("rewrite", "--check", "train.py").stdout
    # but a package is one program, with or without a project around it
    (project / "__init__.py").touch()
    (project / "train.py").write_text(TRAIN.replace("from steps", "from .steps"))
    assert MISSING in run("rewrite", "train.py").stdout
    # or where its folder is the root of one
    (project / ".git").mkdir()
    assert MISSING in run("rewrite", "train.py").stdout


def test_the_home_folder_is_no_project(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many keep the settings there in a repository."""
    (project / ".git").mkdir()
    (project / "scripts").mkdir()
    (project / "scripts/train.py").write_text(TRAIN)
    (project / "scripts/steps.py").write_text(STEPS)
    assert "FO931" in run("rewrite", "scripts/train.py").stdout
    monkeypatch.setenv("HOME", str(project))
    assert "FO931" not in run("rewrite", "scripts/train.py").stdout


def test_files_of_several_projects(project: Path, run: Run) -> None:
    for name in ("one", "two"):
        (project / name / ".git").mkdir(parents=True)
        (project / name / "train.py").write_text(TRAIN)
        (project / name / "steps.py").write_text(STEPS)
    (project / "alone.py").write_text(LEGACY)
    told = run("rewrite", "one/train.py", "two/steps.py", "alone.py").stdout
    assert "one/train.py:7:17: FO931 This optimizer is used in one/steps.py too" in told
    assert "two/steps.py:2:12: FO931 This optimizer is used in two/train.py too" in told
    assert "alone.py: 5 sites rewritten" in told
    words = ("--with-related", "--jobs", "2", "one/train.py", "two/steps.py")
    result = run("rewrite", *words)
    assert "10 sites in 4 files: 10 rewritten" in result.stdout


def test_a_file_by_several_names_is_one_file(tree: Path, run: Run) -> None:
    (tree / "link.py").symlink_to("train.py")
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "link.py").symlink_to(tree / "train.py")
    for named in (["link.py"], ["../outside/link.py"], ["train.py", "./train.py"]):
        told = run("rewrite", *named).stdout
        assert told.startswith(MISSING)
        assert "4 sites in 1 file" in told
    assert "5 rewritten" in run("rewrite", "link.py", "steps.py").stdout
    assert (tree / "link.py").is_symlink()


def test_what_stays_elsewhere_is_told_here_once(tree: Path, run: Run) -> None:
    show = "\n\ndef show(optimizer):\n    return vars(optimizer)\n"
    (tree / "steps.py").write_text(STEPS + show)
    text = TRAIN.replace("import step", "import show, step")
    text = text.replace("return", "show(optimizer)\n    return")
    (tree / "train.py").write_text(text)
    for words in (["train.py"], ["--with-related", "train.py"]):
        told = run("rewrite", *words).stdout
        assert "The same optimizer reaches steps.py:6, which cannot be migrated" in told
        assert "fix: Change steps.py:6 first.\n" in told
        assert told.count("steps.py:6, which") == 1
        assert "waiting for this: 3 sites at train.py:1, 7, 11" in told
        assert "--partial" not in told
    assert (tree / "steps.py").read_text().startswith(STEPS)


def test_what_keeps_its_interface_is_named_together(tree: Path, run: Run) -> None:
    """What optax alone cannot express migrates so, if all of its files are named."""
    (tree / "steps.py").write_text(STEPS.replace("(grads)", "(*grads)"))
    assert run("rewrite", "train.py").stdout.startswith(MISSING)
    result = run("rewrite", "--with-related", "train.py")
    assert "5 sites in 2 files: 5 rewritten" in result.stdout


def test_partial_work_keeps_to_the_named_files(tree: Path, run: Run) -> None:
    """What stays in a file that is not written can have no mark, so the optimizer stays without any."""
    text = STEPS.replace("return", "print(vars(optimizer))\n    return")
    (tree / "steps.py").write_text(text)
    before = texts(tree)
    for named in ("train.py", "steps.py"):
        assert "FO931" in run("rewrite", "--partial", named).stdout
        assert texts(tree) == before
    run("rewrite", "--partial", "train.py", "steps.py")
    assert "TODO(optim2optax)" in (tree / "steps.py").read_text()


def test_a_file_that_cannot_be_parsed_concerns_no_other(tree: Path, run: Run) -> None:
    (tree / "broken.py").write_text(UNPARSABLE)
    (tree / "binary.py").write_bytes(b"\x00\xff flax.optim")
    assert run("rewrite", "other.py").stdout == f"other.py: 5 sites rewritten\n{ALONE}"


def test_parameters_that_others_give_by_name_keep_it(tree: Path, run: Run) -> None:
    """`--rename` would call them `state`."""
    step = "def step(optimizer, grads):\n    return optimizer.apply_gradient(grads)\n"
    (tree / "lab.py").write_text(f"{LEGACY}\n\n{step}")
    call = "lab.step(optimizer=lab.create_optimizer({}), grads={})"
    (tree / "run.py").write_text(f"import lab\n\n{call}\n")
    run("rewrite", "--rename", "lab.py")
    assert "def step(optimizer, grads)" in (tree / "lab.py").read_text()
    assert "apply_gradients" in (tree / "lab.py").read_text()


@pytest.mark.usefixtures("legacy_wheel")
def test_a_copy_of_the_module_is_for_named_files(tree: Path, run: Run) -> None:
    (tree / "train.py").write_text(f"{TRAIN}\n\nNAMES = vars(optim)\n")
    before = texts(tree)
    run("rewrite", "--vendor", "other.py", "steps.py")
    after = texts(tree)
    assert "optax" in after["other.py"]
    for name in ("train.py", "steps.py"):
        assert after[name] == before[name]


def test_modernizing_is_for_named_files(tree: Path, run: Run) -> None:
    old = "import jax\n\n\ndef double(tree):\n    return jax.tree_map(lambda x: 2 * x, tree)\n"
    (tree / "maps.py").write_text(old)
    (tree / "train.py").write_text(f"import maps\n{TRAIN}")
    run("rewrite", "--modernize", "--with-related", "train.py")
    assert (tree / "maps.py").read_text() == old
    assert "apply_gradients" in (tree / "steps.py").read_text()


@pytest.mark.parametrize("named", ["clean.py", "modern.py"])
def test_a_file_that_uses_no_optimizer_is_fast_in_any_project(
    tree: Path, named: str
) -> None:
    (tree / named).write_text({"clean.py": "x = 1\n", "modern.py": MODERN}[named])
    program = (
        "import sys\n"
        "from optim2optax.cli import application\n"
        f"application(['rewrite', {named!r}], standalone_mode=False)\n"
        "assert 'codemods.engine' not in sys.modules\n"
        "assert 'optim2optax.project.patterns' in sys.modules\n"
    )
    done = run_python("-c", program, cwd=tree)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Nothing to migrate in 1 file.\n"
