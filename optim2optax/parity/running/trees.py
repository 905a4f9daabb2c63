"""Working copies of the old tree and the new, so that no run touches the user's own files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from optim2optax.parity.running.git import (
    REPOSITORY,
    TreeError,
    check_out,
    git,
    reason_of,
    repository_root,
    share_head,
)

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
    """Copy the old tree to `target`.

    The copy of a revision is a repository of its own, so that the program may run git in it. It
    has the objects of the one at `root`, which is not changed.

    Args:
        before: a folder, or a revision of the git repository at `root`.
        root: the new tree.
        target: a folder that is empty or does not exist.
        links: paths from the root on that are not copied but linked.

    Raises:
        TreeError: if `before` is neither.
    """
    if Path(before).is_dir():
        copy_tree(Path(before), target, links)
        return
    done = git(root, "rev-parse", "--verify", f"{before}^{{commit}}")
    if done.returncode:
        raise TreeError(
            f"{before} is neither a folder nor a revision of {root}: {reason_of(done)}"
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
        share_head(source, target)
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
