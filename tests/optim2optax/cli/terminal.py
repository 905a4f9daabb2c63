"""`optim2optax` at a terminal of its own."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from optim2optax.cli import application

pty = pytest.importorskip("pty", reason="pseudo-terminals are not of this system")

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Session:
    """What a terminal showed, and the exit code of the program."""

    shown: str
    exit_code: int

    @property
    def plain(self) -> str:
        """What was shown, without colours, and without the lines of progress."""
        lines = (
            line.rpartition("\r")[2] for line in ESCAPE.sub("", self.shown).split("\n")
        )
        return "\n".join(lines)


class Person(Thread):
    """Looks at a terminal."""

    def __init__(self, terminal: int) -> None:
        super().__init__()
        self.terminal = terminal
        self.shown = b""

    def run(self) -> None:
        while more := self._more():
            self.shown += more

    def _more(self) -> bytes:
        try:
            return os.read(self.terminal, 65536)
        except OSError:  # the other side is closed
            return b""


def at_terminal(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> Session:
    """Run `optim2optax` in a folder, at a terminal."""
    outer, inner = pty.openpty()
    person = Person(outer)
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
    code = ended.value.code
    assert isinstance(code, int), code
    return Session(person.shown.decode().replace("\r\n", "\n"), code)
