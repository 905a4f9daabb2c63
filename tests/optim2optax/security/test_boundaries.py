"""What a hostile repository cannot do: have its code run by `rewrite`, reach out of itself, or speak to a terminal."""

import os
import sysconfig
from pathlib import Path

import pytest

from codemods.vocabulary import words
from optim2optax.project import Patterns, find_files
from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import write_files
from tests.optim2optax.processes import run_program
from tests.optim2optax.programs import LEGACY, UNPARSABLE, UNRESOLVABLE

MODULES = words(
    "click codemods conftest flax jax json libcst ml_dtypes msgpack multiprocessing numpy "
    "optim2optax pathspec setup sitecustomize tempfile usercustomize"
)
SCRIPT = Path(sysconfig.get_path("scripts"), "optim2optax")


@pytest.fixture
def trapped(project: Path) -> Path:
    """A project whose every module leaves a trace when it is imported, with work for several processes."""
    for name in MODULES:
        trap = f"{LEGACY}\nopen({str(project.parent / name)!r}, 'w').close()\n"
        write_files(project, {f"{name}/__init__.py": trap})
    return project


COMMANDS = {
    "rewrite --jobs 2 .": 0,
    "rewrite --check --jobs 1 click json": 1,
    "explain FO202": 0,
    "checkpoint inspect numpy/__init__.py": 1,
}


@pytest.mark.parametrize(("line", "exit_code"), COMMANDS.items())
def test_nothing_of_the_users_is_imported(
    trapped: Path, line: str, exit_code: int
) -> None:
    done = run_program(SCRIPT, *line.split())
    assert done.returncode == exit_code, done.stderr
    assert os.listdir(trapped.parent) == ["project"]


NAMES = [
    *("a\x1b[31mred.py", "b\n::error::told.py", "c\r::warning::told.py"),
    *("\u202eyp.d.py", "Модель.py", "学習.py", "🚀.py"),
]


@pytest.mark.parametrize("output_format", ["text", "github", "json", "sarif"])
def test_names_of_files_say_nothing_to_a_terminal_or_a_log(
    project: Path, run: Run, output_format: str
) -> None:
    for name in (*NAMES, os.fsdecode(b"\xff.py"), "x" * 240 + ".py"):
        (project / name).write_text(UNRESOLVABLE)
    # in the text, one reason is one entry, which names few files
    (project / "Модель.py").write_text(UNPARSABLE)
    result = run("rewrite", "--check", "--output-format", output_format, ".")
    assert result.exit_code == 1
    assert not {letter for letter in result.stdout if not letter.isprintable()} - {"\n"}
    for line in result.stdout.splitlines():
        assert not line.lstrip().startswith(("::error::", "::warning::"))
    assert ("Модель.py" in result.stdout) == (output_format in ("text", "github"))


def test_configuration_reaches_nothing_outside(project: Path, run: Run) -> None:
    """Patterns only leave out; a hard link gets its own new content, and the file that it shared stays."""
    outside = project.parent / "outside.py"
    outside.write_text(LEGACY)
    (project / "link.py").symlink_to(outside)
    os.link(outside, project / "hard.py")
    (project / "pyproject.toml").write_text(
        '[tool.optim2optax]\nexclude = ["../*", "!../outside.py", "/../outside.py"]\n'
    )
    (project / ".gitignore").write_text("!../outside.py\n!/../*\n")
    assert run("rewrite", ".").exit_code == 0
    assert outside.read_text() == LEGACY
    assert "optax" in (project / "hard.py").read_text()
    [found] = find_files(["."], Patterns(str(project), ["!../outside.py"]))
    assert found.path == "hard.py"


@pytest.mark.parametrize("name", ["pyproject.toml", ".gitignore"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_configuration_without_end_is_not_read(
    project: Path, run: Run, name: str, kind: str
) -> None:
    """A link that leads to a device, which a repository can hold, or a pipe into which nobody writes."""
    (project / "train.py").write_text(LEGACY)
    if kind == "device":
        (project / name).symlink_to("/dev/zero")
    else:
        os.mkfifo(project / name)
    result = run("rewrite", ".")
    if name == "pyproject.toml":
        assert result.exit_code == 2
        assert f"{name}: not a regular file" in result.stderr
        assert (project / "train.py").read_text() == LEGACY
    else:
        assert result.exit_code == 0


def test_a_configuration_from_elsewhere_holds_for_the_folder_of_its_link(
    project: Path, run: Run
) -> None:
    """Its patterns leave out nothing elsewhere, and nothing elsewhere is written."""
    elsewhere = project.parent / "elsewhere"
    both = {"kept.py": LEGACY, "train.py": LEGACY}
    write_files(project, both)
    configuration = '[tool.optim2optax]\nexclude = ["/kept.py"]\n'
    write_files(elsewhere, {**both, "pyproject.toml": configuration})
    (project / "pyproject.toml").symlink_to(elsewhere / "pyproject.toml")
    assert run("rewrite", ".").exit_code == 0
    assert "optax" in (project / "train.py").read_text()
    assert (project / "kept.py").read_text() == LEGACY
    assert {(elsewhere / name).read_text() for name in both} == {LEGACY}
