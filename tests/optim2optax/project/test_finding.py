"""Which files a run is about. What must not be touched comes first."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from codemods.vocabulary import words
from optim2optax.project import Patterns, find_files, shown


def make_files(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def found(*arguments: str, exclude: Sequence[str] = ()) -> list[str]:
    patterns = Patterns(os.getcwd(), exclude)
    return [file.path for file in find_files(arguments or ["."], patterns)]


FOUND = {
    "no code": ("a.py notes.txt a.pyc a.pyi build/lib/a.py deep/node_modules/a.py .git/hooks/a.py .venv/a.py", {}, ".", "", "a.py"),
    "nested files: the inner one wins, and ! takes back": (
        "a.py generated/b.py keep/generated.py keep/scratch_1.py sub/scratch_2.py sub/c.py",
        {"": "# a comment\n/generated/\nscratch_*.py\n!\n", "keep/": "!scratch_1.py\n", "sub/": "/c.py\n"},
        ".", "", "a.py keep/generated.py keep/scratch_1.py",
    ),
    "a .gitignore above, in a repository": ("src/a.py src/b.py .git/HEAD", {"": "b.py\n"}, "src", "", "src/a.py"),
    "a folder that is named": ("build/demo/a.py .git/HEAD", {"": "build/\n"}, "build/demo", "", "build/demo/a.py"),
    "files that are named": ("script build/a.py", {"": "script\n"}, "script build/a.py", "", "build/a.py script"),
    "excluded below": ("a.py legacy/b.py deep/legacy/c.py deep/d.py", {}, ".", "/legacy/ d.py", "a.py deep/legacy/c.py"),
    "an excluded file": ("a.py legacy/b.py", {}, "a.py legacy/b.py", "legacy", "a.py"),
    "an excluded folder": ("a.py deep/d.py", {}, "a.py deep", "deep", "a.py"),
    "each file once": ("b.py a/c.py", {}, "b.py . ./a/../b.py a", "", "a/c.py b.py"),
    "in the same order": ("b.py a/c.py", {}, "a b.py", "", "a/c.py b.py"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND.values(), ids=FOUND)
def test_what_a_run_is_about(
    project: Path, case: tuple[str, dict[str, str], str, str, str]
) -> None:
    names, ignored, arguments, exclude, expected = case
    make_files(project, *words(names))
    for folder, text in ignored.items():
        (project / folder / ".gitignore").write_text(text)
    assert found(*words(arguments), exclude=words(exclude)) == [*words(expected)]


def test_gitignore_says_what_git_says(project: Path) -> None:
    names = (
        "a.py x/a.py x/y/a.py x/z/a.py x/z/keep.py foo.py x/foo.py x/y/foo/b.py é/ü.py"
    )
    make_files(project, *words(names))
    (project / ".gitignore").write_text("x/**/foo\n/foo.py\nx/z/*\n!x/z/keep.py\né/\n")
    (project / "x/.gitignore").write_text("y/a.py\n")
    subprocess.run(["git", "init", "-q"], check=True)
    command = ["git", "ls-files", "-z", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, check=True, capture_output=True)
    assert found() == sorted(listed.stdout.decode().split("\0")[:-1])


def test_links_out_of_the_folder_are_not_followed(project: Path) -> None:
    outside = project.parent / "outside"
    make_files(outside, "a.py", "package/b.py")
    (project / "a.py").symlink_to(outside / "a.py")
    (project / "package").symlink_to(outside / "package")
    (project / "sibling.py").symlink_to("../outside/a.py")
    assert found() == []


def test_links_within_the_folder_give_the_file_once(project: Path) -> None:
    make_files(project, "real/a.py", "real/script")
    (project / "a.py").symlink_to("real/a.py")
    (project / "again").symlink_to("real")
    (project / "script.py").symlink_to("real/script")
    assert found() == ["real/a.py", "real/script"]


def test_broken_links_loops_and_pipes_are_passed_over(project: Path) -> None:
    (project / "broken.py").symlink_to("nowhere.py")
    (project / "loop.py").symlink_to("loop.py")
    (project / "up").symlink_to(".")
    os.mkfifo(project / "pipe.py")
    assert found() == []


def test_paths_are_shown_from_the_current_folder_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(project, "src/a.py", "src/kit/c.py", "scripts/b.py", "d.py")
    monkeypatch.chdir(project / "src")
    assert found(str(project)) == ["../d.py", "../scripts/b.py", "a.py", "kit/c.py"]
    # the folders around it, too
    assert shown(str(project / "src")) == "."
    assert shown(str(project)) == ".."


def test_names_that_are_not_utf_8(project: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    make_files(project, name)
    [file] = find_files(["."], Patterns(".", ()))
    assert file.path == "caf\N{REPLACEMENT CHARACTER}.py"
    assert file.location == str(project / name)
