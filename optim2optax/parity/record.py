"""Record every update that a process applies, from inside jitted and pmapped code too.

`hook/sitecustomize.py` calls `arm` when the user's program is about to import JAX.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.observing import listen
from optim2optax.parity.precision import precise
from optim2optax.parity.recorder import is_legacy, recording
from optim2optax.parity.scenario import import_packages, parameters_in_float64
from optim2optax.parity.sketch import Part, Sketch, sketch
from optim2optax.parity.stream import Writer

UNKNOWN = -1
"""The step of an update that is applied by hand."""


class Recorder:
    """Writes each update as it arrives, and the parameters ahead of the first of each kind."""

    def __init__(self, folder: Path) -> None:
        self.writer = Writer(folder)
        self._kinds: set[tuple[Part, ...]] = set()
        self._met = False
        self._widened = False
        self._observations: dict[str, int] = {}

    def keep(self, step: Any, before: Any, gradients: Any, rate: Any, after: Any) -> None:
        """Write an update; what it was computed from is not asked for."""
        del gradients, rate
        self._write(int(step), before, after)

    def update(self, before: Any, after: Any) -> None:
        """Write an update of which nothing tells the step."""
        self._write(UNKNOWN, before, after)

    def functional(self, step: Any, before: Any, after: Any) -> None:
        """Write an update that a definition makes by itself."""
        self._write(int(step), before, after)

    def meet(self, state: Any) -> None:
        """Write that a legacy optimizer or definition was met."""
        if is_legacy(state) and not self._met:
            self._met = True
            self.writer.write({"legacy": True})

    def widen(self) -> None:
        """Write that parameters are in float64 that were to be in float32."""
        if not self._widened:
            self._widened = True
            self.writer.write({"widened": True})

    def lose(self) -> None:
        """Nothing is replayed."""

    def observe(self, name: str, tree: Any) -> None:
        """Write what the program hands over, when its values are there."""
        jax.debug.callback(partial(self._observed, name), sketch({name: tree}))

    def _observed(self, name: str, parts: Sketch) -> None:
        number = self._observations[name] = self._observations.get(name, -1) + 1
        self.writer.write({"step": number, "idle": False, "observed": name}, {"after": _arrays(parts)})

    def _write(self, step: int, before: Sketch, after: Sketch) -> None:
        old, new = _arrays(before), _arrays(after)
        idle = all(values.tobytes() == new[part].tobytes() for part, values in old.items() if part in new)
        arrays = {"after": new}
        if (kind := tuple(new)) not in self._kinds:
            self._kinds.add(kind)
            arrays["before"] = old
        self.writer.write({"step": step, "idle": idle}, arrays)


def _arrays(parts: Sketch) -> dict[Part, NDArray[Any]]:
    return {part: np.asarray(values) for part, values in parts.items()}


def arm(
    legacy: bool,
    folder: str,
    foreign: Callable[[], Sequence[str]],
    copies: Sequence[str],
    rounding: bool = False,
    wide: bool = True,
) -> None:
    """Record all that this process does from now on, and let it compute in float64.

    Args:
        legacy: whether this is the old side.
        folder: where the file of this process goes.
        foreign: gives the modules that were loaded from the user's own tree.
        copies: the trees in which the user's code is.
        rounding: whether what a legacy optimizer makes of its parameters is off by a unit in the last place.
        wide: whether optimizers get parameters in float64 that they are given in float32.
    """
    recorder = Recorder(Path(folder))
    stack = ExitStack()
    # Not for a while as `precise` does: callbacks come in threads of their own, and so do training loops.
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    jax.config.update("jax_default_matmul_precision", "highest")  # type: ignore[no-untyped-call]
    stack.enter_context(recording(recorder, legacy, sketch, rounding, wide))
    listen(recorder.observe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_packages(_script(copies))
    stack.enter_context(precise())
    stack.enter_context(parameters_in_float64())

    def finish() -> None:
        jax.effects_barrier()  # type: ignore[no-untyped-call]
        if found := foreign():
            recorder.writer.write({"foreign": list(found)})

    atexit.register(stack.close)
    atexit.register(finish)
    os._exit = _ending(os._exit, finish, os.getpid())


def _ending(end: Callable[[int], Any], finish: Callable[[], None], process: int) -> Any:
    """`os._exit`, which waits for what is still to be recorded. In a process forked off there is nothing to wait for."""

    def end_recorded(status: int) -> None:
        if os.getpid() == process:
            finish()
        end(status)

    return end_recorded


def _script(copies: Sequence[str]) -> Path | None:
    """The file of the user's that this process runs, if it runs one."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    path = Path(file).resolve() if isinstance(file, str) and file.endswith(".py") else None
    return path if path is not None and any(path.is_relative_to(copy) for copy in copies) else None
