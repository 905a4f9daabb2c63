"""Working copies of the old tree and the new, so that nothing that a run does touches the user's files."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

IGNORED = shutil.ignore_patterns(".git", ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", "node_modules")


class TreeError(RuntimeError):
    """A tree that cannot be had; the message says why, and what to do."""


def repository_root(path: Path) -> Path | None:
    """The root of the git repository that a folder is in; None if it is in none, or there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(path), "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def copy_before(before: str, root: Path, target: Path) -> None:
    """Copy the tree as it was to `target`: `before` is a folder, or a revision of the git repository at `root`.

    Raises:
        TreeError: if it is neither.
    """
    if Path(before).is_dir():
        copy_tree(Path(before), target)
        return
    done = subprocess.run(["git", "-C", str(root), "archive", before], capture_output=True, check=False)
    if done.returncode:
        reason = (done.stderr.decode(errors="replace").strip().splitlines() or ["git said nothing"])[-1]
        raise TreeError(f"{before} is neither a folder nor a revision of {root}: {reason}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        # Without a filter, Python 3.14 and its security releases warn.
        archive.extractall(target, filter="data")


def copy_tree(source: Path, target: Path) -> None:
    """Copy a tree as it is now, without what git and Python keep beside it."""
    shutil.copytree(source, target, ignore=IGNORED, symlinks=True, dirs_exist_ok=True)
