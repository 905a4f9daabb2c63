"""Replacing files: atomically, together, and never over somebody else's change."""

import os
import stat
from pathlib import Path

import pytest

from optim2optax.project import FileChange, write_files

UNWRITTEN = "not written, because another file cannot be"


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def change(path: Path, after: bytes = b"new\n") -> FileChange:
    return FileChange(str(path), path.read_bytes(), after)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_file_that_vanished_is_not_created_again(project: Path) -> None:
    path = project / "a.py"
    path.write_bytes(b"old\n")
    stale = change(path)
    path.unlink()
    assert "No such file" in write_files([stale])[str(path)]
    assert names(project) == []


@pytest.mark.parametrize("folder", [True, False])
def test_a_file_that_became_a_folder_or_whose_folder_vanished(
    project: Path, folder: bool
) -> None:
    kept, lost = project / "kept.py", project / "package" / "lost.py"
    kept.write_bytes(b"old")
    if folder:
        lost.mkdir(parents=True)
    there = names(project)
    changes = [FileChange(str(path), b"old", b"new") for path in (kept, lost)]
    reason = "Is a directory" if folder else "No such"
    problem = write_files(changes)[str(lost)]
    assert problem.startswith(f"cannot be written: {reason}")
    assert kept.read_bytes() == b"old"
    assert names(project) == there


def test_if_one_file_cannot_be_written_none_is(project: Path) -> None:
    first, second = project / "a.py", project / "b.py"
    first.write_bytes(b"old a\n")
    second.write_bytes(b"old b\n")
    changes = [change(first), change(second)]
    second.write_bytes(b"edited\n")
    problems = write_files(changes)
    assert problems[str(first)] == UNWRITTEN
    assert "changed" in problems[str(second)]
    assert first.read_bytes() == b"old a\n"
    assert names(project) == ["a.py", "b.py"]


def test_read_only_files_and_folders(unprivileged: Path) -> None:
    path = unprivileged / "a.py"
    path.write_bytes(b"old\n")
    path.chmod(0o444)
    assert "read-only" in write_files([change(path)])[str(path)]
    path.chmod(0o644)
    unprivileged.chmod(0o555)
    assert "Permission denied" in write_files([change(path)])[str(path)]
    unprivileged.chmod(0o755)
    assert path.read_bytes() == b"old\n"


def test_who_reads_meanwhile_sees_all_of_the_old_or_the_new(project: Path) -> None:
    path = project / "a.py"
    path.write_bytes(b"old\n" * 10_000)
    with path.open("rb") as reader:
        beginning = reader.read(4)
        assert write_files([change(path)]) == {}
        assert beginning + reader.read() == b"old\n" * 10_000
    assert path.read_bytes() == b"new\n"
    assert names(project) == ["a.py"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664])
def test_the_mode_stays(project: Path, mode: int) -> None:
    path = project / "a.py"
    path.write_bytes(b"old\n")
    path.chmod(mode)
    assert write_files([change(path)]) == {}
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser may give files away")
def test_the_owner_stays(project: Path) -> None:
    path = project / "a.py"
    path.write_bytes(b"old\n")
    os.chown(path, 1234, 4321)
    assert write_files([change(path)]) == {}
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_any_bytes(project: Path) -> None:
    path = project / "a.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\r\n\x0c\xe9")
    assert write_files([change(path, b"\xef\xbb\xbfy\r\r\n\x00\xff")]) == {}
    assert path.read_bytes() == b"\xef\xbb\xbfy\r\r\n\x00\xff"


def test_new_files(project: Path) -> None:
    """They come with their folder."""
    new, edited = project / "new" / "a.py", project / "b.py"
    edited.write_bytes(b"old\n")
    changes = [change(edited), FileChange(str(new), None, b"new\n")]
    assert write_files(changes) == {}
    assert names(project) == ["b.py", "new"]
    assert new.read_bytes() == edited.read_bytes() == b"new\n"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (new, new.parent)]
    assert modes[0] == modes[1] & 0o666


@pytest.mark.parametrize("stale", ["edited", "new"])
def test_nothing_is_made_if_one_file_cannot_be(project: Path, stale: str) -> None:
    new, edited = project / "new" / "a.py", project / "b.py"
    edited.write_bytes(b"old\n")
    changes = [change(edited), FileChange(str(new), None, b"new\n")]
    if stale == "new":
        new.parent.mkdir()
    place = {"edited": edited, "new": new}[stale]
    place.write_bytes(b"by somebody\n")
    before = contents(project)
    problems = write_files(changes)
    assert "run again" in problems.pop(str(place))
    assert {*problems.values()} == {UNWRITTEN}
    assert contents(project) == before
    assert new.parent.exists() == (stale == "new")
