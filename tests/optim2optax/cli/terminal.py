"""`optim2optax` at a terminal of its own."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals are not of this system")

PROMPT = "]? "
CTRL_C, CTRL_D = "\x03", "\x04"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")
PROGRAM = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "optim2optax", *sys.argv[1:]])
"""
"""Makes the terminal the one that Ctrl-C comes from, then becomes the command."""

PATIENCE = 10
"""So many seconds after a key of which nothing came, it is pressed again."""

LIMIT = 120
"""The number of seconds that a run may take."""


@dataclass(frozen=True)
class Session:
    """What a terminal showed, and the exit code of the program."""

    shown: str
    exit_code: int

    @property
    def plain(self) -> str:
        """What was shown, without colours and links, and without the lines of progress."""
        lines = (
            line.rpartition("\r")[2] for line in ESCAPE.sub("", self.shown).split("\n")
        )
        return "\n".join(lines)


def at_terminal(
    folder: Path,
    *arguments: str,
    answers: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Session:
    """Run `optim2optax` in a folder, at a terminal, and give an answer at each prompt."""
    outer, inner = pty.openpty()
    known = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "FORCE_COLOR")
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env={**known, "TERM": "xterm-256color", **(environment or {})},
        start_new_session=True,
    )
    os.close(inner)
    shown, begun, left = b"", 0, list(answers)
    last, quiet = "", 0
    end = time.monotonic() + LIMIT
    try:
        while time.monotonic() < end:
            if not select.select([outer], [], [], 1)[0]:
                quiet += 1
                # a key between a prompt and the reading of it may be lost
                if last in (CTRL_C, CTRL_D) and quiet % PATIENCE == 0:
                    os.write(outer, last.encode())
                continue
            quiet = 0
            try:
                more = os.read(outer, 65536)
            except OSError:  # the other side is closed
                break
            if not more:
                break
            shown += more
            if PROMPT.encode() in shown[begun:] and left:
                begun = len(shown)
                answer = last = left.pop(0)
                os.write(
                    outer,
                    answer.encode()
                    if answer in (CTRL_C, CTRL_D)
                    else f"{answer}\n".encode(),
                )
        return Session(shown.decode().replace("\r\n", "\n"), process.wait(timeout=10))
    finally:
        process.kill()
        process.wait()
        os.close(outer)
