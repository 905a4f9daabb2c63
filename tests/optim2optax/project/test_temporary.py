"""What a killed run left beside a file: the next run that writes the file removes it, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

from optim2optax.project import FileChange, write_files
from optim2optax.project.replacing import replacing
from optim2optax.project.temporary import OLD, temporary_beside


def leftover(path: Path, age: float) -> Path:
    handle, name = temporary_beside(str(path))
    os.close(handle)
    os.utime(name, (time.time() - age, time.time() - age))
    return Path(name)


def test_old_leftovers_of_the_files_that_are_written_go(tmp_path: Path) -> None:
    path, other = tmp_path / "train.py", tmp_path / "other.py"
    path.write_bytes(b"old")
    old = leftover(path, OLD + 60)
    link = tmp_path / ".train.py.optim2optax-aaaaaaaa.tmp"
    link.symlink_to(other)
    somebodys = tmp_path / ".train.py.swp-aaaaaaaa.tmp"
    somebodys.touch()
    os.utime(somebodys, (0, 0))
    kept = [leftover(path, 0), leftover(other, OLD + 60), somebodys, link]
    assert write_files([FileChange(str(path), b"old", b"new")]) == {}
    assert not old.exists()
    assert {*tmp_path.iterdir()} == {path, *kept}


def test_those_of_a_checkpoint_or_report_go_too(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_5"
    old = leftover(path, OLD + 60)
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert not old.exists()
