"""An internal error costs the file that brings it about, and no other."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")
Run = Callable[[Collection[str], Collection[str]], Result]
"""Does something on the files of a project; those that are given second are named, and not read."""

MOST_RUNS = 100
"""After so many runs, all files that are not known to go well are taken for those that do not."""

INTERNAL = "FO930"
"""The code of what stays because of an internal error."""


@dataclass(frozen=True)
class Failure:
    """An unexpected exception of this tool: in short, and with the traceback for its authors."""

    summary: str
    traceback: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        summary = " ".join(f"{type(error).__name__}: {error}".split())
        return cls(summary, "".join(traceback.format_exception(error)).rstrip())

    def of_file(self) -> str:
        """What users read of a file that is left as it is for this."""
        return (
            f"{INTERNAL} an error within this tool ({self.summary}): "
            "please report it with what --verbose prints"
        )


def contained(
    paths: Iterable[str], run: Run[Result]
) -> tuple[Result, dict[str, Failure]]:
    """The result for all files but those because of which it fails, and how it fails for these.

    Each is found by halves: of the files in order, as many as go well, and the one behind them.

    Raises:
      Exception: if it fails without any file, too.
    """
    files = sorted(paths)
    aside: list[str] = []
    failures: dict[str, Failure] = {}
    runs = 0

    def tried(number: int) -> Result | Failure:
        nonlocal runs
        runs += 1
        try:
            return run(files[:number], aside)
        except OSError:  # no defect of this tool: its output is closed
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, other files go on
            failure = Failure.of(error)
        # what the run had found would take too much memory beside the next
        gc.collect()
        return failure

    well = 0
    while isinstance(found := tried(len(files)), Failure):
        if runs == 1 or not files:
            nothing = run((), ())
        if not files:
            return nothing, failures
        if runs > MOST_RUNS or well == len(files):
            rest = files[well:] or files[:]
            failures |= dict.fromkeys(rest, found)
            aside += rest
            del files[-len(rest) :]
            well = len(files)
            continue
        # files[:well] go well, files[:ill] do not
        ill = len(files)
        while ill - well > 1:
            middle = (well + ill) // 2
            half = tried(middle)
            if isinstance(half, Failure):
                ill, found = middle, half
            else:
                well = middle
        path = files.pop(well)
        failures[path] = found
        aside.append(path)
        # its mere text is too much
        if isinstance(tried(well), Failure):
            aside.remove(path)
    return found, failures
