"""Runs programs of the user's, and ends all processes that they start with them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

NOT_FOUND = 127
"""The exit code of a shell whose command does not exist."""

BY_SIGNAL = 128
"""The number that a shell adds to that of the signal that ended its command."""

LAST_LINES = 15
"""The number of lines of errors that are told."""


def run_whole(
    words: Sequence[str],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    output: Path | None = None,
) -> tuple[int, str]:
    """The exit code of a program, and what it wrote to standard error.

    Its process group ends when it ends, or when this process is interrupted. What it writes to
    standard output goes to the file `output`, or nowhere.

    Raises:
        subprocess.TimeoutExpired: if it takes longer than so many seconds; the exception has what
            was written to standard error.
    """
    # A pipe for the errors would end with the last process that has it, and those that go on are
    # ended only after that.
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        open(output or os.devnull, "wb") as written,
    ):
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            _end(process)
            errors.seek(0)
            error.stderr = errors.read().encode()
            raise
        finally:
            _end(process)
        errors.seek(0)
        return code, errors.read()


def end_of(errors: str) -> str:
    """The last lines of what a program wrote to standard error."""
    return "\n".join(errors.strip().splitlines()[-LAST_LINES:])


def watched(words: Iterable[str]) -> list[str]:
    """A command that does as `words`, and ends with its group as soon as this process has ended.

    That holds even if this process is killed.
    """
    return [sys.executable, "-I", __file__, str(os.getpid()), *words]


def _end(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        # On macOS it is not permitted if no process is left.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def end_with(parent: int) -> None:
    """End this process's group as soon as its parent has ended, as one that was killed."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    # The process gets another parent when its own ends.
    while os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(0, signal.SIGKILL)


def main(parent: int, words: Sequence[str]) -> int:
    """Run a command for a parent, and give its exit code as a shell does."""
    end_with(parent)
    try:
        code = subprocess.call(words)
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return NOT_FOUND
    return code if code >= 0 else BY_SIGNAL - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
