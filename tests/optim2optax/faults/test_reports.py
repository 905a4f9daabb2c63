"""Reports and checkpoints that cannot be written: what was there before is there still, whole."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.serializing import write
from optim2optax.project.replacing import replacing
from tests.optim2optax.conftest import Run
from tests.optim2optax.programs import LEGACY


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """A real full disk, for this process alone."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_checkpoint_on_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_5"
    path.write_bytes(b"old")
    why = "cannot be written: File too large"
    with no_file_grows_beyond(4096), pytest.raises(CheckpointError, match=why):
        write(path, {"kernel": np.ones(10_000)})
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"old"


def test_a_report_keeps_the_mode_of_the_last_and_follows_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "report.html", tmp_path / "link.html"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as file:
        file.write(b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    assert link.is_symlink()
    too_large = pytest.raises(OSError, match="File too large")
    with no_file_grows_beyond(10), too_large, replacing(path) as file:
        file.write(b"newer" * 10)
    assert path.read_bytes() == b"new"


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is always full")
def test_reports_of_parity_that_cannot_be_written(project: Path, run: Run) -> None:
    """Each is named, the others are written, and the exit code is 2."""
    (project / "train.py").write_text(LEGACY)
    paths = {"json": "/dev/full", "markdown": "missing/report.md", "junit": "junit.xml"}
    reports = [f"--{name}={path}" for name, path in paths.items()]
    result = run("parity", "--steps", "1", *reports, ".")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: /dev/full cannot be written: No space left on device",
        "error: missing/report.md cannot be written: No such file or directory",
    ]
    assert (project / "junit.xml").read_text().startswith("<?xml")
    assert {path.name for path in project.iterdir()} == {"train.py", "junit.xml"}
