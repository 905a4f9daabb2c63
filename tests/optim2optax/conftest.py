"""A project folder to work in, and the command line to call in it."""

import os
import tempfile
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from codemods import Source, migrate
from optim2optax.cli import application

Run = Callable[..., Result]
SEPARATE: dict[str, Any] = (
    {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
)
"""Until 8.2, click mixed standard output and error unless told otherwise."""

NOBODY = 65534


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def run(project: Path) -> Run:
    """Call `optim2optax` with arguments, in the project; `stdin` are the bytes of standard input."""

    def call(*arguments: str | os.PathLike[str], stdin: bytes = b"") -> Result:
        return CliRunner(**SEPARATE).invoke(
            application, [str(argument) for argument in arguments], input=stdin
        )

    return call


@pytest.fixture
def settings_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `optim2optax parity` sets for JAX is as it was for the tests that follow."""
    for name in ("JAX_PLATFORMS", "XLA_FLAGS"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


@pytest.fixture
def unprivileged(project: Path) -> Iterator[Path]:
    """A folder whose permissions bind the test. They do not bind the superuser, who becomes nobody for as long."""
    if os.geteuid() != 0:
        yield project
        return
    migrate(
        [Source("warm.py", b"from flax import optim\n")]
    )  # imports what nobody might not be able to read
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, 0)
        try:
            yield Path(folder)
        finally:
            os.setresuid(0, 0, 0)


@pytest.fixture
def unreadable(project: Path) -> Path:
    """A file that cannot be read; for the superuser, who may read any, one whose every read fails."""
    path = project / "unreadable.py"
    path.write_text("from flax import optim\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        path.unlink()
        path.symlink_to("/proc/self/mem")
    return path
