"""Which files a run is about. What must not be touched comes first."""

from __future__ import annotations

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
    return [
        file.path
        for file in find_files(arguments or ["."], Patterns(os.getcwd(), exclude))
    ]


@pytest.mark.parametrize(
    "name",
    [
        *words(
            "notes.txt a.pyc a.pyi .venv/a.py deep/node_modules/a.py "
            ".git/hooks/a.py build/lib/a.py"
        )
    ],
)
def test_a_walk_leaves_out(project: Path, name: str) -> None:
    make_files(project, name, "a.py")
    assert found() == ["a.py"]


def test_gitignore(project: Path) -> None:
    """Nested files hold below their folder, the inner one wins over the outer, and `!` takes back."""
    make_files(
        project,
        "a.py",
        "generated/b.py",
        "keep/generated.py",
        "keep/scratch_1.py",
        "sub/scratch_2.py",
        "sub/c.py",
    )
    (project / ".gitignore").write_text("# a comment\n/generated/\nscratch_*.py\n!\n")
    (project / "keep/.gitignore").write_text("!scratch_1.py\n")
    (project / "sub/.gitignore").write_text("/c.py\n")
    assert found() == ["a.py", "keep/generated.py", "keep/scratch_1.py"]


def test_gitignore_says_what_git_says(project: Path) -> None:
    names = [
        *words(
            "a.py x/a.py x/y/a.py x/z/a.py x/z/keep.py foo.py x/foo.py "
            "x/y/foo/b.py é/ü.py"
        )
    ]
    make_files(project, *names)
    (project / ".gitignore").write_text("x/**/foo\n/foo.py\nx/z/*\n!x/z/keep.py\né/\n")
    (project / "x/.gitignore").write_text("y/a.py\n")
    subprocess.run(["git", "init", "-q"], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard", "*.py"],
        check=True,
        capture_output=True,
    )
    assert found() == sorted(listed.stdout.decode().split("\0")[:-1])


def test_gitignore_above_the_folder_holds_inside_a_repository(project: Path) -> None:
    make_files(project, "src/a.py", "src/b.py", ".git/HEAD")
    (project / ".gitignore").write_text("b.py\n")
    assert found("src") == ["src/a.py"]


def test_a_folder_that_is_named_is_walked_though_ignored(project: Path) -> None:
    make_files(project, "build/demo/a.py", ".git/HEAD")
    (project / ".gitignore").write_text("build/\n")
    assert found("build/demo") == ["build/demo/a.py"]


def test_exclude(project: Path) -> None:
    make_files(project, "a.py", "legacy/b.py", "deep/legacy/c.py", "deep/d.py")
    assert found(exclude=["/legacy/", "d.py"]) == ["a.py", "deep/legacy/c.py"]
    assert found("a.py", "legacy/b.py", exclude=["legacy"]) == ["a.py"]
    assert found("a.py", "deep", exclude=["deep"]) == ["a.py"]


def test_a_named_file_is_taken_whatever_its_name_and_gitignore(project: Path) -> None:
    make_files(project, "script", "build/a.py")
    (project / ".gitignore").write_text("script\n")
    assert found("script", "build/a.py") == ["build/a.py", "script"]


def test_each_file_once_and_in_the_same_order(project: Path) -> None:
    make_files(project, "b.py", "a/c.py")
    assert (
        found("b.py", ".", "./a/../b.py", "a")
        == ["a/c.py", "b.py"]
        == found("a", str(project), "b.py")
    )


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
