"""`optim2optax` at a terminal of its own."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread, main_thread

import pytest

from optim2optax.cli import application

pty = pytest.importorskip("pty", reason="pseudo-terminals are not of this system")

PROMPT = b"]? "
CTRL_C, CTRL_D = "\x03", "\x04"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")


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


class Person(Thread):
    """Looks at a terminal, and gives an answer at each prompt."""

    def __init__(self, terminal: int, answers: Sequence[str]) -> None:
        super().__init__()
        self.terminal, self.answers = terminal, list(answers)
        self.shown = b""

    def run(self) -> None:
        answered = 0
        while more := self._more():
            self.shown += more
            if PROMPT in self.shown[answered:] and self.answers:
                answered = len(self.shown)
                self._press(self.answers.pop(0))

    def _more(self) -> bytes:
        try:
            return os.read(self.terminal, 65536)
        except OSError:  # the other side is closed
            return b""

    def _press(self, answer: str) -> None:
        if answer == CTRL_C:
            signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
        else:
            os.write(
                self.terminal, (answer + ("" if answer == CTRL_D else "\n")).encode()
            )


def at_terminal(
    folder: Path,
    *arguments: str,
    answers: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Session:
    """Run `optim2optax` in a folder, at a terminal, and give an answer at each prompt."""
    outer, inner = pty.openpty()
    # the background of a shell, in which the tests may run, ignores it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    person = Person(outer, answers)
    person.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("TERM", "xterm-256color")
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            patch.setattr(sys, name, os.fdopen(os.dup(inner), mode))
        os.close(inner)
        try:
            with pytest.raises(SystemExit) as ended:
                application(arguments, prog_name="optim2optax")
        finally:
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                stream.close()
            person.join()
            os.close(outer)
            signal.signal(signal.SIGINT, before)
    code = ended.value.code
    assert isinstance(code, int), code
    return Session(person.shown.decode().replace("\r\n", "\n"), code)
