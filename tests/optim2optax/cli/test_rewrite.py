"""`optim2optax rewrite` on whole small projects: what it writes, what it prints, how it exits."""

import ast
import os
import re
from pathlib import Path

import pytest

from codemods import Options
from codemods.sources.parsing import parse
from optim2optax.project import Patterns, find_files, write_files
from optim2optax.rewriting import rewrite_files
from tests.optim2optax.conftest import Run
from tests.optim2optax.processes import run_python
from tests.optim2optax.programs import (
    LEGACY,
    MODERN,
    SUPPRESSED,
    UNPARSABLE,
    UNRESOLVABLE,
)


def write(project: Path, **programs: str) -> None:
    for name, program in programs.items():
        (project / f"{name}.py").write_text(program)


@pytest.mark.parametrize(
    "arguments",
    [("--check",), ("--diff",), ("--check", "--diff"), ("--check", "--unsafe")],
)
@pytest.mark.parametrize("output_format", ["text", "json", "github", "sarif"])
def test_a_preview_writes_nothing(
    project: Path, run: Run, arguments: tuple[str, ...], output_format: str
) -> None:
    write(project, train=LEGACY, other=UNRESOLVABLE)

    def state() -> dict[Path, tuple[bytes, int]]:
        files = project.iterdir()
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = state()
    words = ("rewrite", *arguments, "--output-format", output_format, ".")
    assert run(*words).exit_code == 1
    assert state() == before


def test_rewrites_in_place(project: Path, run: Run) -> None:
    write(project, train=LEGACY, modern=MODERN)
    untouched = (project / "modern.py").stat()
    result = run("rewrite", ".")
    assert result.exit_code == 0
    assert result.stderr == ""
    totals = "5 sites in 1 file: 5 rewritten, 0 suppressed, 0 unresolved\n"
    assert result.stdout == f"train.py: 5 sites rewritten\n{totals}"
    text = (project / "train.py").read_text()
    assert "optax.sgd(learning_rate=0.1, momentum=0.9)" in text
    assert "return optimizer, optimizer.params" in text
    assert "optim." not in text
    assert (project / "modern.py").stat().st_ino == untouched.st_ino
    assert (project / "modern.py").stat().st_mtime_ns == untouched.st_mtime_ns
    assert sorted(os.listdir(project)) == ["modern.py", "train.py"]


def test_a_second_run_changes_nothing(project: Path, run: Run) -> None:
    write(project, train=LEGACY)
    assert run("rewrite", ".").exit_code == 0
    once = (project / "train.py").stat()
    result = run("rewrite", ".")
    assert (result.exit_code, result.stdout) == (0, "Nothing to migrate in 1 file.\n")
    assert (project / "train.py").stat().st_ino == once.st_ino


@pytest.mark.parametrize(
    ("program", "written", "checked"),
    [
        pytest.param(MODERN, 0, 0, id="nothing to do"),
        pytest.param(LEGACY, 0, 1, id="everything is rewritten"),
        pytest.param(UNRESOLVABLE, 1, 1, id="a site remains"),
        pytest.param(SUPPRESSED, 0, 0, id="suppressed"),
        pytest.param(UNPARSABLE, 1, 1, id="cannot be parsed"),
    ],
)
def test_exit_codes(
    project: Path, run: Run, program: str, written: int, checked: int
) -> None:
    write(project, train=program)
    assert run("rewrite", "--check", ".").exit_code == checked
    assert run("rewrite", "--diff", ".").exit_code == checked
    assert run("rewrite", ".").exit_code == written


WRONG = [
    *("", "missing.py", "train.py missing.py", "- train.py", "--verify -"),
    *("--form sgd .", "--output-format xml .", "--select FO999 .", "--nonsense ."),
    *("--ignore FO1,nonsense .", "--jobs 0 .", "--exclude ! ."),
]


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_usage(project: Path, run: Run, arguments: str) -> None:
    write(project, train=LEGACY)
    result = run("rewrite", *arguments.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr
    assert (project / "train.py").read_text() == LEGACY


def test_a_bad_file_does_not_stop_the_others(
    project: Path, run: Run, unreadable: Path
) -> None:
    coding = "# coding: no-such-codec\nfrom flax import optim\n"
    nul = "from flax import optim\n\x00\n"
    write(project, train=LEGACY, broken=UNPARSABLE, nul=nul, coding=coding)
    names = ("broken.py", "nul.py", "coding.py")
    bad = {project / name: (project / name).read_bytes() for name in names}
    result = run("rewrite", "train.py", *names, unreadable.name)
    assert result.exit_code == 1
    assert "optax" in (project / "train.py").read_text()
    assert {path: path.read_bytes() for path in bad} == bad
    for name in names:
        assert f"{name}: error: " in result.stdout
    assert ": error: cannot be read: " in result.stdout
    assert "4 files could not be read, parsed or written: see above" in result.stdout


def test_only_unreadable_files(run: Run, unreadable: Path) -> None:
    result = run("rewrite", unreadable)
    assert result.exit_code == 1
    assert "cannot be read" in result.stdout
    assert "Nothing to migrate" not in result.stdout


def test_what_is_no_source_file_is_an_error_when_named(project: Path, run: Run) -> None:
    os.mkfifo(project / "pipe.py")
    (project / "notebook.ipynb").write_text('{"worksheets": ["flax.optim"]}')
    result = run("rewrite", "pipe.py", "notebook.ipynb")
    assert result.exit_code == 1
    assert "pipe.py: error: not a regular file" in result.stdout
    assert "notebook.ipynb: error: is no notebook of format 4" in result.stdout


def test_a_folder_that_cannot_be_listed(unprivileged: Path, run: Run) -> None:
    write(unprivileged, train=LEGACY)
    (unprivileged / "closed").mkdir(mode=0)
    result = run("rewrite", unprivileged)
    (unprivileged / "closed").chmod(0o755)
    assert result.exit_code == 1
    assert "closed: error: cannot be read: Permission denied" in result.stdout
    assert "optax" in (unprivileged / "train.py").read_text()


def test_a_link_stays_a_link(project: Path, run: Run) -> None:
    (project / "real").mkdir()
    (project / "real/train.py").write_text(LEGACY)
    (project / "train.py").symlink_to("real/train.py")
    result = run("rewrite", ".", "train.py", "real")
    assert "5 sites in 1 file: 5 rewritten" in result.stdout
    assert (project / "train.py").is_symlink()
    assert "optax" in (project / "real/train.py").read_text()


def test_a_file_outside_is_not_reached_through_a_link(project: Path, run: Run) -> None:
    outside = project.parent / "outside.py"
    outside.write_text(LEGACY)
    (project / "train.py").symlink_to(outside)
    assert run("rewrite", ".").stdout == "No Python files found.\n"
    assert outside.read_text() == LEGACY


def test_a_file_that_changes_underneath_the_run(project: Path) -> None:
    """Somebody saves a file between the moment it is read and the moment it would be replaced."""
    write(project, train=LEGACY, other=LEGACY)
    found = find_files(["."], Patterns(".", ()))

    def save(stage: str, *_: int) -> None:
        if stage == "Rewriting":
            (project / "train.py").write_text("edited = True\n")

    other, train = rewrite_files(found, Options(), write=True, progress=save)
    assert train.error is not None
    assert "changed while it was being migrated" in train.error
    assert other.error == "not written, because another file cannot be"
    assert not train.changed
    assert not other.changed
    assert (project / "train.py").read_text() == "edited = True\n"
    assert (project / "other.py").read_text() == LEGACY
    assert write_files([]) == {}


def test_select_and_ignore(project: Path, run: Run) -> None:
    write(project, train="import jax\n" + LEGACY)
    assert "optax" not in run("rewrite", "--diff", "--ignore", "fo1,FO202", ".").stdout
    selected = ("--select", "FO1,FO2", "--select", "FO9")
    assert "optax" in run("rewrite", "--diff", *selected, ".").stdout


def test_forms(project: Path, run: Run) -> None:
    write(project, train=LEGACY)
    assert "optax.sgd(" in run("rewrite", "--diff", "--form", "alias", ".").stdout
    assert "optax.chain(" in run("rewrite", "--diff", "--form", "chain", ".").stdout


@pytest.mark.parametrize("current", [".", "src", "src/pkg", ".."])
def test_the_current_folder_changes_nothing(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, current: str
) -> None:
    """The optimizer is built in one file and read in another, which imports it by its full name."""
    (project / "src/pkg").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    (project / "src/pkg/build.py").write_text(LEGACY)
    step = "from pkg.build import create_optimizer\n\nprint(create_optimizer({'w': 1.0}).target)\n"
    (project / "src/pkg/step.py").write_text(step)
    monkeypatch.chdir(project / current)
    files = [project / "src/pkg/step.py", project / "src/pkg/build.py"]
    assert run("rewrite", *files).exit_code == 0
    assert files[0].read_text() == step.replace(".target", ".params")


def test_reasons_name_other_files_as_people_see_them(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").touch()
    (project / "src").mkdir()
    (project / "src/train.py").write_text(UNRESOLVABLE)
    monkeypatch.chdir(project / "src")
    stdout = run("rewrite", "--check", ".").stdout
    assert stdout.startswith("train.py:5:20: FO903 ")
    assert "waiting for this: 2 sites at train.py:" in stdout
    assert "src/train.py" not in stdout


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", [(), ("rewrite",), ("explain",), ("rules",)])
def test_help_has_examples(run: Run, command: tuple[str, ...], flag: str) -> None:
    result = run(*command, flag)
    assert result.exit_code == 0
    assert re.search(r"Examples:\n +optim2optax ", result.stdout)
    assert result.stdout.startswith(" ".join(("Usage: optim2optax", *command)))


def test_version(run: Run) -> None:
    assert run("--version").stdout == "optim2optax 0.1.0\n"


def test_an_unexpected_error_exits_with_2(project: Path) -> None:
    """1 would say that something is left to do. An engine that cannot be imported stands for any defect."""
    write(project, train=LEGACY)
    program = (
        "import sys\nsys.modules['codemods.engine'] = None\n"
        "from optim2optax.cli import application\napplication(['rewrite', 'train.py'])\n"
    )
    done = run_python("-c", program)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "internal error" in done.stderr
    assert done.stdout == ""
    assert (project / "train.py").read_text() == LEGACY


@pytest.mark.parametrize("option", ["--check", "--diff", "--verbose", "--jobs=1"])
def test_an_internal_error_costs_one_file_and_exits_with_2(
    project: Path, run: Run, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, train=LEGACY, failing=LEGACY + "FAILING = True\n")

    def failing(code: str) -> ast.Module:
        if "FAILING" in code:
            raise KeyError("planted")
        return parse(code)

    monkeypatch.setattr("codemods.engine.parse", failing)
    result = run("rewrite", option, ".")
    assert result.exit_code == 2
    told = result.stderr if option == "--diff" else result.stdout
    assert (
        "failing.py: error: FO930 an error within this tool (KeyError: 'planted'): please report it "
        "with what --verbose prints; not seen: line 2 `from flax import optim`, "
    ) in told
    counted = (
        "An error within this tool in 1 file: please report what --verbose prints."
    )
    assert told.endswith(f"{counted}\n")
    is_told = "Traceback (most recent call last):\n" in result.stderr
    assert is_told == (option == "--verbose")
    assert (project / "failing.py").read_text() == LEGACY + "FAILING = True\n"
    is_written = option in ("--verbose", "--jobs=1")
    assert ("optax" in (project / "train.py").read_text()) == is_written


def test_a_new_module_of_helpers_is_written_and_told(project: Path, run: Run) -> None:
    """It is beside the two scripts that need it, in the folder that was named."""
    text = "from flax import optim\n\n\ndef make(params):\n    return optim.LAMB(0.1).create(params)\n"
    write(project, one=text, two=text)
    previewed = run("rewrite", "--check", ".")
    assert previewed.exit_code == 1
    assert "\n.: 1 file would be written: optax_compat.py\n" in previewed.stdout
    assert not (project / "optax_compat.py").exists()
    result = run("rewrite", ".")
    assert result.exit_code == 0
    assert "\n.: 1 file written: optax_compat.py\n" in result.stdout
    assert "def scale_by_norm_ratio" in (project / "optax_compat.py").read_text()
    assert run("rewrite", "--check", ".").exit_code == 0
