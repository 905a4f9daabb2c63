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

from codemods.model import WorkerError

SAFE_PATH = "PYTHONSAFEPATH"
Item = TypeVar("Item")
Result = TypeVar("Result")


def share(
    do: Callable[[Item], Result], items: Sequence[Item], jobs: int, chunksize: int = 1
) -> Iterator[Result]:
    """What comes of each item, in order, by several processes, which do not import from the current folder.

    Python 3.10 cannot keep them from that: there, this process does all.

    Raises:
      WorkerError: if one of them dies.
    """
    if jobs == 1 or not hasattr(sys.flags, "safe_path"):
        yield from map(do, items)
        return
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        # Not by fork: the caller may have threads.
        with (
            ProcessPoolExecutor(
                min(jobs, len(items)), get_context("spawn"), initializer=_begin
            ) as pool,
            _ended(),
        ):
            with _held_back():
                parts = [
                    items[start : start + chunksize] for start in range(0, len(items), chunksize)
                ]
                results = [pool.submit(_each, do, part) for part in parts]
            for result in results:
                yield from result.result()
    except BrokenProcessPool as error:
        raise WorkerError(
            "a worker process died, perhaps for want of memory; --jobs 1 takes least"
        ) from error
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM, also from the processes that begin here, until `_begin` takes them.

    A process whose beginning is interrupted says so with a traceback.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _each(do: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return list(map(do, items))


def _begin() -> None:
    """Let Ctrl-C and SIGTERM end this process without a word; the one that began it speaks."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


@contextmanager
def _ended() -> Iterator[None]:
    """End the processes that began meanwhile if what they do is not waited for."""
    before = multiprocessing.active_children()
    try:
        yield
    except BaseException:
        for process in multiprocessing.active_children():
            if process not in before:
                process.terminate()
        raise
