"""Programs of the user's that are run: nothing that they start outlives them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TEMPORARY = "optim2optax-"
"""How the names of temporary folders begin; the number of the process that made it follows."""

NOT_FOUND = 127
"""The exit code of a shell whose command is not there."""

BY_SIGNAL = 128
"""What a shell adds to the number of the signal that ended its command."""


def run_whole(
    words: Sequence[str],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    output: Path | None = None,
) -> tuple[int, str]:
    """Run a program in a process group of its own, and end all of the group when it ends or this process is interrupted.

    What it writes to standard output goes to the file `output`, or nowhere.

    Returns:
        The exit code, and what it wrote to standard error. A file takes that, not a pipe: a pipe ends when the last process that
        holds it does, and those that go on are ended only after that.

    Raises:
        subprocess.TimeoutExpired: if it takes longer than so many seconds; it holds what was written to standard error.
    """
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


def watched(words: Sequence[str]) -> list[str]:
    """A command that does what `words` do, and ends with its group as soon as this process is gone, even if it is killed."""
    return [sys.executable, "-I", __file__, str(os.getpid()), *words]


def remove_abandoned(folder: Path) -> None:
    """Remove from a folder the temporary folders of runs that were killed and could not do so themselves."""
    for path in folder.glob(f"{TEMPORARY}*-*"):
        number = re.match(rf"{TEMPORARY}(\d+)-", path.name)
        if number and _is_ours(path) and not _is_alive(int(number[1])):
            shutil.rmtree(path, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    """Whether this user made a folder, and on a system where asking for a process does not end it."""
    return (
        hasattr(os, "getuid")
        and path.is_dir()
        and not path.is_symlink()
        and path.stat().st_uid == os.getuid()
    )


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        # On macOS it is not permitted if nobody is left.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def end_with(parent: int) -> None:
    """End this process's group as soon as its parent is gone, as a worker is that was killed."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
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
