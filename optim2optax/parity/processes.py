"""Programs of the user's that are run: nothing that they start outlives them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_whole(
    words: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a program in a process group of its own, and end all of the group when it ends or this process is interrupted.

    Returns:
        The exit code, and what it wrote to standard error. A file takes that, not a pipe: a pipe ends when the last process that
        holds it does, and those that go on are ended only after that.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait()
        finally:
            _end(process)
        errors.seek(0)
        return code, errors.read()


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
