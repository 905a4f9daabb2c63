"""Processes that share work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from codemods.model import WorkerError

SAFE_PATH = "PYTHONSAFEPATH"
Item = TypeVar("Item")
Result = TypeVar("Result")


def share(do: Callable[[Item], Result], items: Sequence[Item], jobs: int, chunksize: int = 1) -> Iterator[Result]:
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
        with ProcessPoolExecutor(min(jobs, len(items)), get_context("spawn")) as pool:
            yield from pool.map(do, items, chunksize=chunksize)
    except BrokenProcessPool as error:
        raise WorkerError("a worker process died, perhaps for want of memory; --jobs 1 takes least") from error
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
