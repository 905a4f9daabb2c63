"""Standard streams that are full or closed, and Ctrl-C at any moment."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.optim2optax.processes import run_program
from tests.optim2optax.programs import LEGACY

COMMAND = (sys.executable, "-m", "optim2optax")
FULL = Path("/dev/full")
THE_END = "what nobody writes"


@pytest.mark.skipif(
    not FULL.exists(), reason="this system has no device that is always full"
)
@pytest.mark.parametrize(
    "words",
    [
        ("rewrite", "--diff", "."),
        ("explain", "Adam"),
        ("--help",),
        ("rewrite", "--help"),
    ],
)
def test_standard_output_takes_no_more(project: Path, words: tuple[str, ...]) -> None:
    (project / "train.py").write_text(LEGACY)
    with FULL.open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2,
        "Error: the output cannot be written: No space left on device\n",
    )
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
        (project / f"train_{number}.py").write_text(
            f"{LEGACY}# {number}\n" if number < 3 else ""
        )
    running, shown = on_a_terminal("--jobs", "1")
    text = read_until(shown, THE_END)
    os.close(shown)
    assert running.communicate()[0].endswith(
        "15 sites in 3 files: 15 rewritten, 0 suppressed, 0 unresolved\n"
    )
    lines = [line.strip() for line in text.split("\r")]
    assert {"Reading 20/20", "Analysing 0", "Rewriting 0/3", "Rewriting 3/3"} <= {
        *lines
    }
    assert lines[-2:] == ["", ""]
    assert [*dict.fromkeys(line.split()[0] for line in lines if line)] == [
        "Reading",
        "Analysing",
        "Rewriting",
        "Writing",
    ]


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


def on_a_terminal(*words: str) -> tuple[subprocess.Popen[str], int]:
    """A run that has a terminal for its standard error, and what is shown there."""
    shown, terminal = os.openpty()
    command = [*COMMAND, "rewrite", *words, "."]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        start_new_session=True,
    )
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
    files = [
        project / f"{part}/train_{index}.py" for part in "ab" for index in range(50)
    ]
    for part in "ab":
        (project / part / ".git").mkdir(parents=True)
    for file in files:
        file.write_text(LEGACY)
    running = subprocess.Popen(
        [*COMMAND, "rewrite", "--jobs", "2", "."],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
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
    return {
        pid for pid, state in rows if pid != str(session) and not state.startswith("Z")
    }
