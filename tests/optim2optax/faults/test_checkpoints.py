"""Conversions of checkpoints that are killed, or that the disk is too small for: what is there is whole, or nothing is.

OPTIM2OPTAX_KILLS is how many runs are killed at a moment at random, for each format.
"""

import os
import random
import signal
import sys
from pathlib import Path

import pytest

from optim2optax.checkpoints.contents import contents
from optim2optax.checkpoints.files import read
from tests.optim2optax.checkpoints.test_converting import folder
from tests.optim2optax.processes import Done, environment, run_python

__all__ = ["folder"]
pytestmark = [pytest.mark.usefixtures("legacy_wheel"), pytest.mark.thorough]

KILLS = int(os.environ.get("OPTIM2OPTAX_KILLS", "3"))
ENDING = """
import os, signal, sys

moment, folder, *words = sys.argv[1:]
moment, passed = int(moment), 0

def watch(event, arguments):
    global passed
    if event.split(".")[0] in ("open", "os", "shutil", "tempfile") and str(arguments[:1]).find(folder) >= 0:
        passed += 1
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)

from optim2optax.cli import application
sys.addaudithook(watch)
try:
    application(words)
finally:
    print("moments:", passed)
"""
"""Ends at a moment: when it touches the folder for that many times."""

FULL = """
import resource, signal, sys

from optim2optax.cli import application
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
application(sys.argv[1:])
"""
"""No file gets larger than fifty bytes."""


def convert(folder: Path, format_: str, program: str, *more: str) -> Done:
    words = ("checkpoint", "convert", "checkpoint_3", "new", "--force")
    options = ("--format", format_, "--state", "program_of_mine:create_state")
    path = os.pathsep.join((str(folder), *sys.path))
    variables = environment(PYTHONPATH=path, JAX_PLATFORMS="cpu")
    return run_python("-c", program, *more, *words, *options, cwd=folder, env=variables)


@pytest.mark.parametrize("format_", ["msgpack", "orbax"])
def test_killed_at_any_moment(format_: str, folder: Path) -> None:
    """Nothing is there, or all of it; what is replaced stays until then; and the next run makes it good."""
    old = (folder / "checkpoint_3").read_bytes()
    done = convert(folder, format_, ENDING, "-1", str(folder))
    assert done.returncode == 0, done.stderr
    moments = int(done.stdout.rpartition("moments: ")[2])
    numbers = random.Random(0)
    for _ in range(KILLS):
        moment = str(numbers.randint(1, moments))
        killed = convert(folder, format_, ENDING, moment, str(folder))
        assert killed.returncode in (0, -signal.SIGKILL), killed.stderr
        assert (folder / "checkpoint_3").read_bytes() == old
        places = (folder / "new", *folder.glob(".new.*/old"))
        there = [path for path in places if path.exists()]
        assert there
        for path in there:
            [found] = contents(read(path)).found
            assert found.step == 3
    assert convert(folder, format_, ENDING, "-1", str(folder)).returncode == 0
    assert contents(read(folder / "new")).found[0].step == 3


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the limit is that of POSIX")
@pytest.mark.parametrize("format_", ["msgpack", "orbax"])
def test_a_disk_that_is_too_small(format_: str, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    done = convert(folder, format_, FULL)
    assert done.returncode == 2, done.stderr
    assert "new cannot be written: " in done.stderr
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == before
