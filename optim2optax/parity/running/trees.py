"""Working copies of the old tree and the new, so that no run touches the user's own files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from optim2optax.wording import last_line

REPOSITORY = ".git"
IGNORED = shutil.ignore_patterns(
    REPOSITORY,
    ".venv",
    "venv",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
)
ENVIRONMENT = "pyvenv.cfg"
"""A folder with this file is a virtual environment."""


def copy_before(
    before: str, root: Path, target: Path, links: Sequence[Path] = ()
) -> None:
    """Copy the old tree, a folder or a revision of the repository at `root`, to `target`.

    The copy of a revision is a repository of its own, so that the program may run git in it. It
    has the objects of the one at `root`, which is not changed. Paths of `links` are linked.

    Raises:
        TreeError: if `before` is neither.
    """
    if Path(before).is_dir():
        copy_tree(Path(before), target, links)
        return
    done = git(root, "rev-parse", "--verify", f"{before}^{{commit}}")
    if done.returncode:
        raise TreeError(
            f"{before} is neither a folder nor a revision of {root}: "
            f"{last_line(done.stderr)}"
        )
    check_out(done.stdout.strip(), root, target)
    _link(root, target, links)
    _lead_outside(root, target)


def copy_tree(source: Path, target: Path, links: Sequence[Path] = ()) -> None:
    """Copy a tree as it is now, without the folders that git and Python keep in it.

    Paths of `links` are linked, not copied. Repositories in a tree that is none itself are marked
    in the copy, since `rewrite` takes each for a project of its own.
    """

    def ignored(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(source)

        def is_linked(name: str) -> bool:
            is_environment = Path(folder, name, ENVIRONMENT).exists()
            return is_environment or inside / name in links

        linked = set(filter(is_linked, names))
        return IGNORED(folder, names) | linked

    shutil.copytree(source, target, ignore=ignored, symlinks=True, dirs_exist_ok=True)
    _link(source, target, links)
    _lead_outside(source, target)
    if (source / REPOSITORY).exists() and repository_root(source) is not None:
        _share_repository(source, target)
        git(target, "reset", "--quiet")
        return
    root = source.resolve()
    around = (root, *root.parents)
    if not any((folder / REPOSITORY).exists() for folder in around):
        _mark_repositories(source, target)


def _mark_repositories(source: Path, target: Path) -> None:
    """Mark each repository of a tree in its copy by an empty folder, which git passes over."""
    for folder, _, _ in os.walk(target):
        inside = Path(folder).relative_to(target)
        if (source / inside / REPOSITORY).exists():
            (target / inside / REPOSITORY).mkdir()


def surround(root: Path, folder: Path) -> None:
    """Link the files and folders beside a tree, for `../data`, into the folder of its copy."""
    # A program may read `../data/train.csv`.
    beside_root = list(root.parent.iterdir()) if os.access(root.parent, os.R_OK) else []
    for path in beside_root:
        beside = folder / path.name
        if path.name != root.name and not folder.is_relative_to(path):
            beside.symlink_to(path)


def _link(source: Path, target: Path, links: Sequence[Path]) -> None:
    """Link paths that are not copied, and virtual environments, to where they are."""
    environments = [
        path.parent.relative_to(source) for path in source.glob(f"*/{ENVIRONMENT}")
    ]
    for path in (*links, *environments):
        there = source / path
        here = target / path
        if there.exists() and not here.exists():
            here.parent.mkdir(parents=True, exist_ok=True)
            here.symlink_to(there.absolute())


def _lead_outside(source: Path, target: Path) -> None:
    """Let relative links that lead out of a tree lead to the same place from its copy."""
    for folder, folders, files in os.walk(target):
        for name in (*folders, *files):
            link = Path(folder, name)
            if not link.is_symlink() or os.path.isabs(os.readlink(link)):
                continue
            # data -> ../../datasets
            home = (source / link.relative_to(target)).parent
            aim = Path(os.path.abspath(home / os.readlink(link)))
            if not aim.is_relative_to(source.absolute()):
                link.unlink()
                link.symlink_to(aim)


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
    root = _answer(path, "rev-parse", "--show-toplevel")
    return None if root is None else Path(root)


def tree_around(folder: Path) -> Path:
    """The root of the git repository around a folder, or else the folder."""
    return (repository_root(folder) or folder).resolve()


def commit_of(revision: str, root: Path) -> str | None:
    """The commit that a revision of a repository is; None if it is none."""
    return _answer(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")


def _answer(folder: Path, *words: str) -> str | None:
    """What git prints; None if it fails, or is not there."""
    try:
        done = git(folder, *words)
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout.strip()


def is_ignored(root: Path, path: Path) -> bool:
    """Whether something exists at a path in a repository, and git ignores it."""
    return (root / path).exists() and not git(
        root, "check-ignore", "--quiet", str(path)
    ).returncode


def git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, without hooks."""
    # A pre-commit hook would else have git work on the repository of the commit.
    environment = {
        name: value for name, value in os.environ.items() if name not in ELSEWHERE
    }
    settings = "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"
    return subprocess.run(
        ["git", "-C", str(folder), *settings, *words],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )


def check_out(commit: str, root: Path, target: Path) -> None:
    """Put the files of a commit into a repository of their own.

    The files of submodules are added where they were fetched.
    """
    target.mkdir(parents=True, exist_ok=True)
    _share_repository(root, target)
    done = git(target, "checkout", "--quiet", "--detach", commit)
    if done.returncode:
        raise TreeError(
            f"git could not check out {commit} of {root}: {last_line(done.stderr)}"
        )
    for path, within in _submodules(target, commit):
        submodule = root / path
        was_fetched = (submodule / REPOSITORY).exists()
        if was_fetched and not git(submodule, "cat-file", "-e", within).returncode:
            check_out(within, submodule, target / path)


def _submodules(repository: Path, commit: str) -> Iterator[tuple[str, str]]:
    """The paths of the submodules in a commit, each with its own commit."""
    # 160000 commit 2f6a…\tpath/of/submodule
    entries = git(repository, "ls-tree", "-r", "-z", commit).stdout
    for entry in entries.split("\0"):
        facts, _, path = entry.partition("\t")
        if facts.startswith(SUBMODULE):
            yield path, facts.split()[2]


def _share_repository(root: Path, target: Path) -> None:
    """Make a repository that reads the objects of another, with its branches, tags and HEAD."""
    place = target / REPOSITORY
    git(target, "clone", "--quiet", "--mirror", "--shared", str(root), str(place))
    git(target, "config", "core.bare", "false")
    # The program pushes nothing into the user's repository.
    git(target, "config", "--remove-section", "remote.origin")
    # The objects of Git LFS are no objects of git.
    done = git(root, "rev-parse", "--git-path", "lfs")
    large = (root / done.stdout.strip()).resolve()
    if large.exists():
        (place / "lfs").symlink_to(large)
