"""A parity run that is stopped leaves nothing behind: no file, no process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.optim2optax.processes import run_program, run_python
from tests.optim2optax.programs import LEGACY
from tests.optim2optax.repositories import commit_all

PARITY = (sys.executable, "-m", "optim2optax", "parity", "--platform", "cpu")
WAIT = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"{os.getppid()} {os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""
SLEEP = "time.sleep(100)\n"
RUN = "import sys; from optim2optax.parity.running.processes import run_whole; print(run_whole(sys.argv[1:]))\n"
RUN_WATCHED = """\
import os, sys
from optim2optax.parity.running.processes import run_whole
run_whole([sys.executable, "-c", sys.argv[1], *sys.argv[2:], str(os.getpid())])
"""
WATCH = "from optim2optax.parity.running.processes import end_with\nimport sys\nend_with(int(sys.argv[2]))\n"


def processes(note: Path) -> list[int]:
    """The process that runs a program, the program's and that of its child, as soon as they are known."""
    while not note.exists():
        time.sleep(0.05)
    return [int(word) for word in note.read_text().split()]


def assert_they_end(numbers: list[int]) -> None:
    """Wait for processes that were killed until nobody has them."""
    deadline = time.monotonic() + 30
    while any(map(is_alive, numbers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [number for number in numbers if is_alive(number)] == []


def is_alive(process: int) -> bool:
    state = run_program("ps", "-o", "stat=", "-p", str(process)).stdout
    return state.strip()[:1] not in ("", "Z")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_while_which_the_run_is_told_to_end(
    number: signal.Signals, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said what it runs; the user's repository is as it was, and no temporary file or process stays."""
    temporary, note = project.parent / "temporary", project.parent / "note"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    (project / "train.py").write_text(LEGACY)
    (project / "wait.py").write_text(WAIT + SLEEP)
    commit_all(project)
    signal.signal(number, signal.SIG_DFL)  # which under nohup is another
    words = [*PARITY, "--before", "HEAD", "--", "python", "wait.py", str(note)]
    running = subprocess.Popen(words, stdout=PIPE, stderr=PIPE, text=True)
    _, *started = processes(note)
    running.send_signal(number)
    _, errors = running.communicate()
    assert running.returncode == 130
    assert errors.splitlines() == [
        f"Running `python wait.py {note}` in copies of HEAD and of the code as it is now …",
        "Interrupted.",
    ]
    assert_they_end(started)
    assert [*temporary.iterdir()] == []
    assert run_program("git", "status", "--porcelain", "--ignored").stdout == ""


@pytest.mark.parametrize("end", ["", "sys.exit(3)\n"])
def test_a_program_that_ends_and_leaves_a_process(tmp_path: Path, end: str) -> None:
    note = tmp_path / "note"
    done = run_python("-c", RUN, sys.executable, "-c", WAIT + end, note)
    assert done.stdout == ("(3, '')\n" if end else "(0, '')\n")
    assert_they_end(processes(note)[1:])


def test_a_program_in_the_group_of_others_does_not_end_them(tmp_path: Path) -> None:
    """As one is that was started by hand, and not by a runner."""
    program = WATCH + "import time\ntime.sleep(0.2)\n"
    shell = '"$0" -c "$1" "" 0; echo $?'
    words = ("sh", "-c", shell, sys.executable, program)
    done = run_program(*words, start_new_session=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_whose_runner_ends(tmp_path: Path, number: signal.Signals) -> None:
    """By Ctrl-C, or killed as a worker of `--jobs` may be."""
    note = tmp_path / "note"
    words = [sys.executable, "-c", RUN_WATCHED, WATCH + WAIT + SLEEP, str(note)]
    running = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    started = processes(note)
    os.kill(running.pid, number)
    running.wait()
    assert_they_end(started)
