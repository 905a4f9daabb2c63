"""Revisions of git repositories, checked out into repositories of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = ".git"

ELSEWHERE = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
)
"""Variables by which a hook of git names its own repository to the programs that it runs."""

SUBMODULE = "160000"


class TreeError(RuntimeError):
    """A tree that cannot be copied; the message says why, and what to do."""


def repository_root(path: Path) -> Path | None:
    """The root of the git repository around a folder; None if there is none, or no git."""
    try:
        done = git(path, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return None
    if done.returncode:
        return None
    return Path(done.stdout.strip())


def commit_of(revision: str, root: Path) -> str | None:
    """The commit that a revision of a repository is; None if it is none."""
    try:
        done = git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except FileNotFoundError:
        return None
    if done.returncode:
        return None
    return done.stdout.strip()


def share_head(root: Path, target: Path) -> None:
    """Let the copy of a tree be a repository on the same commit.

    It is on the same branch, too, if there is one.
    """
    _share_repository(root, target)
    branch = git(root, "symbolic-ref", "--quiet", "HEAD").stdout.strip()
    head = git(root, "rev-parse", "HEAD").stdout.strip()
    if branch:
        git(target, "symbolic-ref", "HEAD", branch)
    else:
        git(target, "update-ref", "--no-deref", "HEAD", head)
    git(target, "reset", "--quiet")


def git(
    folder: Path, *words: str, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, without hooks, and with a text to its standard input if given."""
    # A pre-commit hook would else have git work on the repository of the commit.
    environment = {
        name: value for name, value in os.environ.items() if name not in ELSEWHERE
    }
    command = [
        "git",
        "-C",
        str(folder),
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "advice.detachedHead=false",
        *words,
    ]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        input=given,
        env=environment,
        check=False,
    )


def reason_of(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of what git wrote to its stderr."""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else "git said nothing"


def check_out(commit: str, root: Path, target: Path) -> None:
    """Put the files of a commit into a repository of their own.

    The files of submodules are added where they were fetched.
    """
    target.mkdir(parents=True, exist_ok=True)
    _share_repository(root, target)
    done = git(target, "checkout", "--quiet", "--detach", commit)
    if done.returncode:
        raise TreeError(
            f"git could not check out {commit} of {root}: {reason_of(done)}"
        )
    for path, within in _submodules(target, commit):
        submodule = root / path
        was_fetched = (submodule / REPOSITORY).exists()
        if was_fetched and _has_object(submodule, within):
            check_out(within, submodule, target / path)


def _has_object(repository: Path, commit: str) -> bool:
    return git(repository, "cat-file", "-e", commit).returncode == 0


def _submodules(repository: Path, commit: str) -> Iterator[tuple[str, str]]:
    """The paths of the submodules in a commit, each with its own commit."""
    # 160000 commit 2f6a…\tpath/of/submodule
    entries = git(repository, "ls-tree", "-r", "-z", commit).stdout
    for entry in entries.split("\0"):
        facts, _, path = entry.partition("\t")
        if facts.startswith(SUBMODULE):
            yield path, facts.split()[2]


def _share_repository(root: Path, target: Path) -> None:
    """Make a repository that reads the objects of another, and has its branches and tags."""
    git(target, "init", "--quiet")
    place = target / REPOSITORY
    info = place / "objects" / "info"
    info.mkdir(exist_ok=True)
    objects = _git_path(root, "objects")
    (info / "alternates").write_text(f"{objects}\n")
    # A shallow clone lacks the parents of its oldest commits; git must know which.
    shallow = _git_path(root, "shallow")
    if shallow.exists():
        shutil.copy(shallow, place / "shallow")
    # The objects of Git LFS are no objects of git.
    large = _git_path(root, "lfs")
    if large.exists():
        (place / "lfs").symlink_to(large)
    # Each line is a command of `git update-ref`.
    form = "--format=create %(refname) %(objectname)"
    refs = git(root, "for-each-ref", form, "refs/heads", "refs/tags").stdout
    git(target, "update-ref", "--stdin", given=refs)


def _git_path(root: Path, name: str) -> Path:
    """A path within a repository; a worktree has it in the repository that it is of."""
    done = git(root, "rev-parse", "--git-path", name)
    return (root / done.stdout.strip()).resolve()
