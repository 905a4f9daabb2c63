"""Processes that share work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

SAFE_PATH = "PYTHONSAFEPATH"
OUR_SAFE_PATH = "optim2optax"
"""The value for processes of our own, which a command of the user's must not inherit."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerError(RuntimeError):
    """A process that shared the work died."""


def share(
    do: Callable[[Item], Result], items: Sequence[Item], jobs: int
) -> Iterator[Result]:
    """The result of each item, in order, by several processes.

    They do not import from the current folder. Python 3.10 has no way to prevent that: there, this
    process does all.

    Raises:
      WorkerError: if one of them dies.
    """
    if jobs == 1 or not hasattr(sys.flags, "safe_path"):
        yield from map(do, items)
        return
    # not by fork: the caller may have threads
    spawning = get_context("spawn")
    with safe_path():
        try:
            with (
                ProcessPoolExecutor(
                    min(jobs, len(items)), spawning, initializer=_begin
                ) as pool,
                _terminated(),
            ):
                # processes start as work is submitted
                with _blocked_signals():
                    results = [pool.submit(do, item) for item in items]
                for result in results:
                    yield result.result()
        except BrokenProcessPool as error:
            raise WorkerError(
                "a worker process died, perhaps because memory ran out; --jobs 1 needs the least"
            ) from error


@contextmanager
def safe_path() -> Iterator[None]:
    """Let new processes not import from the current folder, from Python 3.11 on."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = before or OUR_SAFE_PATH
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM, also in processes that begin here, until `_begin` unblocks them.

    A process that is interrupted at its beginning prints a traceback.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Let Ctrl-C and SIGTERM end this process without output, which its parent writes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


@contextmanager
def _terminated() -> Iterator[None]:
    """Terminate the processes that began in this context if it ends with an exception."""
    before = multiprocessing.active_children()
    try:
        yield
    except BaseException:
        for process in multiprocessing.active_children():
            if process not in before:
                process.terminate()
        raise
