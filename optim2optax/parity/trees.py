"""Working copies of the old tree and the new, so that nothing that a run does touches the user's files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = ".git"
IGNORED = shutil.ignore_patterns(
    REPOSITORY, ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", "node_modules"
)
ENVIRONMENT = "pyvenv.cfg"
"""A folder with this file is a virtual environment."""

ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
"""Variables by which a hook of git's tells the programs that it runs of its own repository."""

SUBMODULE = "160000"


class TreeError(RuntimeError):
    """A tree that cannot be had; the message says why, and what to do."""


def repository_root(path: Path) -> Path | None:
    """The root of the git repository that a folder is in; None if it is in none, or there is no git."""
    try:
        done = _git(path, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return None
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def commit_of(revision: str, root: Path) -> str | None:
    """The commit that a revision of a repository is; None if it is none."""
    try:
        done = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def copy_before(before: str, root: Path, target: Path, links: Sequence[Path] = ()) -> None:
    """Copy the tree as it was to `target`: `before` is a folder, or a revision of the git repository at `root`.

    The copy of a revision is a repository of its own, on which git may be asked. It has the objects of the one at `root`, which
    is not changed.

    Args:
        before: the old tree.
        root: the new tree.
        target: a folder that is empty or not there.
        links: paths from the root on that are not copied but linked.

    Raises:
        TreeError: if it is neither.
    """
    if Path(before).is_dir():
        copy_tree(Path(before), target, links)
        return
    done = _git(root, "rev-parse", "--verify", f"{before}^{{commit}}")
    if done.returncode:
        raise TreeError(f"{before} is neither a folder nor a revision of {root}: {_reason(done)}")
    _check_out(done.stdout.strip(), root, target)
    _link(root, target, links)
    _lead_outside(root, target)


def copy_tree(source: Path, target: Path, links: Sequence[Path] = ()) -> None:
    """Copy a tree as it is now, without what git and Python keep beside it. Paths of `links` are linked, not copied.

    Repositories in a tree that is none itself stay told apart, since `rewrite` takes each for a project of its own.
    """

    def ignored(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(source)
        linked = {
            name
            for name in names
            if inside / name in links or (Path(folder, name) / ENVIRONMENT).exists()
        }
        return IGNORED(folder, names) | linked

    shutil.copytree(source, target, ignore=ignored, symlinks=True, dirs_exist_ok=True)
    _link(source, target, links)
    _lead_outside(source, target)
    if (source / REPOSITORY).exists() and repository_root(source) is not None:
        _share_head(source, target)
    elif not any(
        (folder / REPOSITORY).exists() for folder in (source.resolve(), *source.resolve().parents)
    ):
        _mark_repositories(source, target)


def _mark_repositories(source: Path, target: Path) -> None:
    """Let an empty folder mark each repository of a tree in its copy. Git passes over it."""
    for folder, _, _ in os.walk(target):
        inside = Path(folder).relative_to(target)
        if (source / inside / REPOSITORY).exists():
            (target / inside / REPOSITORY).mkdir()


def _share_head(root: Path, target: Path) -> None:
    """Let the copy of a tree be a repository on the same commit, and on the same branch if there is one."""
    _share_repository(root, target)
    branch = _git(root, "symbolic-ref", "--quiet", "HEAD").stdout.strip()
    head = _git(root, "rev-parse", "HEAD").stdout.strip()
    _git(
        target,
        *(
            ("symbolic-ref", "HEAD", branch)
            if branch
            else ("update-ref", "--no-deref", "HEAD", head)
        ),
    )
    _git(target, "reset", "--quiet")


def surround(root: Path, folder: Path) -> None:
    """Link what stands beside a tree, for `../data`, into the folder of its copy."""
    beside_root = list(root.parent.iterdir()) if os.access(root.parent, os.R_OK) else []
    for path in beside_root:
        beside = folder / path.name
        if path.name != root.name and not folder.is_relative_to(path):
            beside.symlink_to(path)


def _git(folder: Path, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
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


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip().splitlines() or ["git said nothing"])[-1]


def _check_out(commit: str, root: Path, target: Path) -> None:
    """Put the files of a commit into a repository of their own, and those of submodules as far as they are at hand."""
    target.mkdir(parents=True, exist_ok=True)
    _share_repository(root, target)
    done = _git(target, "checkout", "--quiet", "--detach", commit)
    if done.returncode:
        raise TreeError(f"git could not check out {commit} of {root}: {_reason(done)}")
    for path, within in _submodules(target, commit):
        if (root / path / REPOSITORY).exists() and _git(
            root / path, "cat-file", "-e", within
        ).returncode == 0:
            _check_out(within, root / path, target / path)


def _submodules(repository: Path, commit: str) -> Iterator[tuple[str, str]]:
    for entry in _git(repository, "ls-tree", "-r", "-z", commit).stdout.split("\0"):
        facts, _, path = entry.partition("\t")
        if facts.startswith(SUBMODULE):
            yield path, facts.split()[2]


def _share_repository(root: Path, target: Path) -> None:
    """Make a repository that reads the objects of another, and has its branches and tags."""
    _git(target, "init", "--quiet")
    place = target / REPOSITORY
    (place / "objects" / "info").mkdir(exist_ok=True)
    (place / "objects" / "info" / "alternates").write_text(f"{_git_path(root, 'objects')}\n")
    if (shallow := _git_path(root, "shallow")).exists():
        shutil.copy(shallow, place / "shallow")
    if (large := _git_path(root, "lfs")).exists():
        (place / "lfs").symlink_to(large)
    refs = _git(
        root, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/heads", "refs/tags"
    ).stdout
    _git(target, "update-ref", "--stdin", given=refs)


def _git_path(root: Path, name: str) -> Path:
    return (root / _git(root, "rev-parse", "--git-path", name).stdout.strip()).resolve()


def _link(source: Path, target: Path, links: Sequence[Path]) -> None:
    """Link paths that are not copied, and virtual environments, to where they are."""
    environments = [path.parent.relative_to(source) for path in source.glob(f"*/{ENVIRONMENT}")]
    for path in (*links, *environments):
        if (source / path).exists() and not (target / path).exists():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).symlink_to((source / path).absolute())


def _lead_outside(source: Path, target: Path) -> None:
    """Let relative links that lead out of a tree lead there from its copy, too."""
    for folder, folders, files in os.walk(target):
        for name in (*folders, *files):
            link = Path(folder, name)
            if link.is_symlink() and not os.path.isabs(os.readlink(link)):
                aim = Path(
                    os.path.abspath((source / link.relative_to(target)).parent / os.readlink(link))
                )
                if not aim.is_relative_to(source.absolute()):
                    link.unlink()
                    link.symlink_to(aim)
