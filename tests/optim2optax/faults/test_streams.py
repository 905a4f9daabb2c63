"""Standard streams that are full or closed, and Ctrl-C at any moment."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.optim2optax.processes import run_program
from tests.optim2optax.programs import LEGACY

COMMAND = (sys.executable, "-m", "optim2optax")
FULL = Path("/dev/full")
THE_END = "what nobody writes"


WRITING = ["rewrite --diff .", "explain Adam", "--help", "rewrite --help"]


@pytest.mark.skipif(not FULL.exists(), reason="no device is always full")
@pytest.mark.parametrize("words", WRITING)
def test_standard_output_takes_no_more(project: Path, words: str) -> None:
    (project / "train.py").write_text(LEGACY)
    command = [*COMMAND, *words.split()]
    with FULL.open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=PIPE, text=True, check=False)
    told = "Error: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)
    assert (project / "train.py").read_text() == LEGACY


def test_closed_streams(project: Path) -> None:
    """The work is done as if they led nowhere, and no file that is opened meanwhile gets their numbers."""
    (project / "train.py").write_text(LEGACY)
    command = '"$0" -m optim2optax rewrite . <&- >&- 2>&-'
    subprocess.run(["/bin/sh", "-c", command, sys.executable], check=True)
    assert "optax" in (project / "train.py").read_text()


def test_a_terminal_shows_where_a_run_is(project: Path) -> None:
    """In a line that goes when the run ends."""
    for number in range(20):
        text = f"{LEGACY}# {number}\n" if number < 3 else ""
        (project / f"train_{number}.py").write_text(text)
    running, shown = on_a_terminal("--jobs", "1")
    text = read_until(shown, THE_END)
    os.close(shown)
    totals = "15 sites in 3 files: 15 rewritten, 0 suppressed, 0 unresolved\n"
    assert running.communicate()[0].endswith(totals)
    lines = [line.strip() for line in text.split("\r")]
    expected = {"Reading 20/20", "Analysing 0", "Rewriting 0/3", "Rewriting 3/3"}
    assert expected <= {*lines}
    assert lines[-2:] == ["", ""]
    stages = [*dict.fromkeys(line.split()[0] for line in lines if line)]
    assert stages == ["Reading", "Analysing", "Rewriting", "Writing"]


@pytest.mark.parametrize("stage", ["Reading", "Analysing", "Rewriting"])
def test_interrupted_at_each_stage(project: Path, stage: str) -> None:
    for index in range(100):
        (project / f"train_{index}.py").write_text(LEGACY)
    running, shown = on_a_terminal()
    read_until(shown, stage)
    os.killpg(running.pid, signal.SIGINT)
    assert read_until(shown, THE_END).split("\r")[-2:] == ["Interrupted.", "\n"]
    os.close(shown)
    assert (running.communicate()[0], running.returncode) == ("", 130)
    assert {path.read_text() for path in project.iterdir()} == {LEGACY}


def started(*words: str, stderr: int = PIPE) -> subprocess.Popen[str]:
    command = [*COMMAND, "rewrite", *words, "."]
    return subprocess.Popen(
        command, stdout=PIPE, stderr=stderr, text=True, start_new_session=True
    )


def on_a_terminal(*words: str) -> tuple[subprocess.Popen[str], int]:
    """A run that has a terminal for its standard error, and what is shown there."""
    shown, terminal = os.openpty()
    running = started(*words, stderr=terminal)
    os.close(terminal)
    return running, shown


def read_until(shown: int, word: str) -> str:
    """What is shown up to a word, or until nobody writes any more, which some systems call an error."""
    text = ""
    with contextlib.suppress(OSError):
        while word not in text and (more := os.read(shown, 10_000)):
            text += more.decode()
    return text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_worker_processes_run(
    project: Path, number: signal.Signals
) -> None:
    """Ctrl-C goes to the whole process group of a terminal, SIGTERM to one process: one word, and no process stays."""
    names = [f"{part}/train_{index}.py" for part in "ab" for index in range(50)]
    files = [project / name for name in names]
    for part in "ab":
        (project / part / ".git").mkdir(parents=True)
    for file in files:
        file.write_text(LEGACY)
    running = started("--jobs", "2")
    # Two workers, and the process that Python lets watch over what they share.
    while len(others := members(running.pid)) < 3 and hasattr(sys.flags, "safe_path"):
        time.sleep(0.02)
    (os.killpg if number is signal.SIGINT else os.kill)(running.pid, number)
    assert running.communicate() == ("", "Interrupted.\n")
    assert running.returncode == 130
    while others & members(running.pid):
        time.sleep(0.02)
    assert {file.read_text() for file in files} == {LEGACY}


def members(session: int) -> set[str]:
    """The living processes of a session, without its first."""
    table = run_program("ps", "-o", "pid=,stat=", "-s", str(session)).stdout
    rows = (line.split() for line in table.splitlines())
    living = {pid for pid, state in rows if not state.startswith("Z")}
    return living - {str(session)}
