"""What a process records of the updates that it applies: each is written as it arrives, and all ahead of the process's end.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import atexit
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from optim2optax.parity.recorder import is_legacy_optimizer
from optim2optax.parity.sketch import sketch
from optim2optax.parity.stream import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from optim2optax.parity.sketch import Part

    Leaves = Callable[[Any], Mapping[str, Any]]

UNKNOWN = -1
"""The step of an update that is applied by hand."""


class Recorder:
    """Writes each update as it arrives, and the parameters ahead of the first of each kind.

    `leaves` gives the leaves of a tree by their paths.
    """

    def __init__(self, folder: Path, leaves: Leaves) -> None:
        self.writer = Writer(folder)
        self.leaves = leaves
        self._kinds: set[tuple[Part, ...]] = set()
        self._met = False
        self._observations: dict[str, int] = {}

    def part(self, tree: Any) -> dict[Part, Any]:
        """What is kept of parameters."""
        return sketch(self.leaves(tree))

    def keep(self, step: Any, before: Any, gradients: Any, rate: Any, after: Any) -> None:
        """Write an update; what it was computed from is not asked for."""
        del gradients, rate
        self._write(int(step), before, after)

    def update(self, before: Any, after: Any) -> None:
        """Write an update of which nothing tells the step."""
        self._write(UNKNOWN, before, after)

    def meet(self, state: Any) -> None:
        """Write that a legacy optimizer was met."""
        if is_legacy_optimizer(state) and not self._met:
            self._met = True
            self.writer.write({"legacy": True})

    def lose(self) -> None:
        """Nothing is replayed."""

    def observe(self, name: str, tree: Any) -> None:
        """Write what the program hands over, when its values are there."""
        jax.debug.callback(partial(self._observed, name), self.part({name: tree}))

    def _observed(self, name: str, parts: Mapping[Part, Any]) -> None:
        number = self._observations[name] = self._observations.get(name, -1) + 1
        self.writer.write({"step": number, "idle": False, "observed": name}, {"after": _arrays(parts)})

    def _write(self, step: int, before: Mapping[Part, Any], after: Mapping[Part, Any]) -> None:
        old, new = _arrays(before), _arrays(after)
        idle = all(values.tobytes() == new[part].tobytes() for part, values in old.items() if part in new)
        arrays = {"after": new}
        kind = tuple(new)
        if kind not in self._kinds:
            self._kinds.add(kind)
            arrays["before"] = old
        self.writer.write({"step": step, "idle": idle}, arrays)

    def finish_at_exit(self, foreign: Callable[[], Sequence[str]]) -> None:
        """Let all be written ahead of the end of this process, and what was loaded from the user's own tree."""

        def finish() -> None:
            jax.effects_barrier()  # type: ignore[no-untyped-call]
            found = foreign()
            if found:
                self.writer.write({"foreign": list(found)})

        atexit.register(finish)
        os._exit = _ending(os._exit, finish, os.getpid())


def _arrays(parts: Mapping[Part, Any]) -> dict[Part, NDArray[Any]]:
    return {part: np.asarray(values) for part, values in parts.items()}


def _ending(end: Callable[[int], Any], finish: Callable[[], None], process: int) -> Any:
    """`os._exit`, which waits for what is still to be recorded. In a process forked off there is nothing to wait for."""

    def end_recorded(status: int) -> None:
        if os.getpid() == process:
            finish()
        end(status)

    return end_recorded


def script(copies: Sequence[str]) -> Path | None:
    """The file of the user's that this process runs, if it runs one."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    path = Path(file).resolve() if isinstance(file, str) and file.endswith(".py") else None
    return path if path is not None and any(Path(copy) in path.parents for copy in copies) else None
