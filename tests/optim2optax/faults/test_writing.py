"""Runs that are killed, or that cannot write: every file is wholly old or wholly new.

OPTIM2OPTAX_KILLS is how many runs are killed at a moment at random; a long run has 200 or more.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from tests.optim2optax.processes import environment, run_command, run_program
from tests.optim2optax.programs import LEGACY

KILLS = int(os.environ.get("OPTIM2OPTAX_KILLS", "3"))
COMMAND = (sys.executable, "-m", "optim2optax", "rewrite", "--jobs", "1", ".")
WRITE = (
    "import pathlib, sys\n"
    "from optim2optax.project import FileChange, write_files\n"
    "paths = sorted(pathlib.Path('.').glob('*.py'))\n"
    "sys.exit(bool(write_files([FileChange(str(path.absolute()), b'old' * 999, b'new' * 999) for path in paths])))\n"
)


def traced(*words: str) -> list[str]:
    """A command that writes three files, under strace."""
    quiet = ("-qq", "-o", "/dev/null")
    return ["strace", *quiet, *words, sys.executable, "-B", "-c", WRITE]


def can_trace() -> bool:
    is_there = shutil.which("strace") is not None
    return is_there and run_program("strace", "-qq", "true").returncode == 0


@pytest.mark.skipif(not can_trace(), reason="strace is not there, or may not trace")
@pytest.mark.parametrize("call", ["fsync", "chown", "chmod", "rename"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_killed_at_each_system_call_of_a_write(
    project: Path, call: str, number: int
) -> None:
    paths = [project / f"{name}.py" for name in "abc"]
    for path in paths:
        path.write_bytes(b"old" * 999)
    command = traced("-e", f"inject={call}:signal=KILL:when={number}")
    done = subprocess.run(command, check=False)
    assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    contents = [path.read_bytes() for path in paths]
    new = {b"new" * 999} if call == "rename" else set()
    assert {*contents} <= {b"old" * 999} | new
    for path in paths:
        path.write_bytes(b"old" * 999)
    assert subprocess.run([sys.executable, "-c", WRITE], check=False).returncode == 0
    assert [path.read_bytes() for path in paths] == [b"new" * 999] * 3


@pytest.mark.skipif(not can_trace(), reason="strace is not there, or may not trace")
@pytest.mark.parametrize(
    "fault", ["write:ENOSPC", "fsync:EIO", "rename:EROFS", "chmod:EPERM"]
)
def test_a_system_call_that_fails_leaves_files_as_they_were(
    project: Path, fault: str
) -> None:
    """From the first one on; strace lets the kernel refuse it."""
    for name in "abc":
        (project / f"{name}.py").write_bytes(b"old" * 999)
    call, _, error = fault.partition(":")
    done = subprocess.run(traced("-e", f"inject={call}:error={error}"), check=False)
    assert done.returncode == 1
    contents = {path.name: path.read_bytes() for path in project.iterdir()}
    assert contents == {f"{name}.py": b"old" * 999 for name in "abc"}


def test_killed_at_any_moment(project: Path) -> None:
    """What is left behind is not searched, and the next run does the rest."""
    names = [f"train_{number}.py" for number in range(6)]
    for name in names:
        (project / name).write_text(LEGACY)
    started = time.monotonic()
    subprocess.run(COMMAND, check=True, capture_output=True)
    whole = time.monotonic() - started
    new = (project / names[0]).read_text()
    numbers = random.Random(0)
    for _ in range(KILLS):
        for name in names:
            (project / name).write_text(LEGACY)
        running = subprocess.Popen(COMMAND, stdout=DEVNULL, stderr=DEVNULL)
        time.sleep(whole * numbers.uniform(0.5, 1))
        running.kill()
        running.wait()
        assert {(project / name).read_text() for name in names} <= {LEGACY, new}
    done = run_program(*COMMAND)
    assert {(project / name).read_text() for name in names} == {new}
    assert ".tmp" not in done.stdout


def test_a_full_disk(project: Path) -> None:
    """No file may grow: nothing is written, each file is named, and nothing is left behind."""
    program = LEGACY + "#" * 20_000
    for name in "ab":
        (project / f"{name}.py").write_text(program)

    limited = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh")
    done = run_program(*limited, sys.executable, "-B", *COMMAND[1:])
    assert done.returncode == 1
    assert done.stdout.count("cannot be written: File too large") == 2
    contents = {path.name: path.read_text() for path in project.iterdir()}
    assert contents == {"a.py": program, "b.py": program}


def test_a_worker_process_that_dies(project: Path) -> None:
    """The run ends with 2, says why in one line, and has written nothing."""
    names = [f"{part}/train_{number}.py" for part in "ab" for number in range(16)]
    files = [project / name for name in names]
    for part in "ab":
        (project / part / ".git").mkdir(parents=True)
    for file in files:
        file.write_text(LEGACY)
    # It dies as soon as it imports the engine, as if for want of memory.
    site = project.parent / "site"
    site.mkdir()
    killing = "'--multiprocessing-fork' in sys.orig_argv and os.kill(os.getpid(), 9)"
    (site / "sitecustomize.py").write_text(f"import os, sys\n{killing}\n")
    words = ("rewrite", "--jobs", "2", ".")
    done = run_command(*words, env=environment(PYTHONPATH=str(site)))
    if not hasattr(sys.flags, "safe_path"):
        assert done.returncode == 0  # no process but this one
        return
    assert done.returncode == 2
    assert "a worker process died" in done.stderr
    assert "Traceback" not in done.stderr
    assert {file.read_text() for file in files} == {LEGACY}


def reading(*command: str) -> subprocess.Popen[str]:
    """A command that reads from a pipe that does not end yet."""
    running = subprocess.Popen(
        [*command, "-"], stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True
    )
    assert running.stdin is not None
    # more than a pipe holds: this returns when the command reads
    running.stdin.write("#" * 1_000_000)
    running.stdin.flush()
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_end(project: Path, number: signal.Signals) -> None:
    """While it reads: no traceback."""
    running = reading(*COMMAND[:-1])
    running.send_signal(number)
    stdout, stderr = running.communicate()
    assert (running.returncode, stdout, stderr.strip()) == (130, "", "Interrupted.")


def test_in_the_background_of_a_shell(project: Path) -> None:
    """There, Ctrl-C is for others: the shell has it ignored, and it stays that."""
    running = reading("sh", "-c", 'trap "" INT; exec "$@"', "sh", *COMMAND[:-1])
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate()
    assert (running.returncode, stdout) == (0, "#" * 1_000_000)
    assert "Nothing to migrate" in stderr
