"""Run a training command and record every update that it applies, from inside jitted and pmapped code too.

python -m optim2optax.parity.record --out updates.npz --side legacy -- python train.py --steps 20
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.judge import leaves_by_path
from optim2optax.parity.precision import precise
from optim2optax.parity.processes import end_with
from optim2optax.parity.recorder import recording
from optim2optax.parity.scenario import import_packages, parameters_in_float64

UNKNOWN = -1
"""The step of an update that is applied by hand."""

LARGEST = 4096
"""Of a larger leaf so many elements are kept, always the same ones, and the sums of all elements and of their squares."""


class Recorder:
    """Keeps the parameters ahead of and after each update, as they arrive."""

    def __init__(self) -> None:
        self.updates: list[tuple[int, dict[str, NDArray[Any]], dict[str, NDArray[Any]]]] = []
        self._lock = threading.Lock()

    def keep(self, step: Any, before: Any, gradients: Any, rate: Any, after: Any) -> None:
        """Keep an update; what it was computed from is not asked for."""
        del gradients, rate
        update = (int(step), _sketch(before), _sketch(after))
        with self._lock:
            self.updates.append(update)

    def update(self, before: Any, after: Any) -> None:
        """Keep an update of which nothing tells the step."""
        with self._lock:
            self.updates.append((UNKNOWN, _sketch(before), _sketch(after)))

    def meet(self, state: Any) -> None:
        """Nothing is kept of what steps."""

    def lose(self) -> None:
        """Nothing is replayed."""

    def save(self, path: Path) -> None:
        """Write all updates to an .npz file: `N/step`, `N/before/LEAF` and `N/after/LEAF` for the N-th."""
        arrays: dict[str, NDArray[Any]] = {}
        for number, (step, before, after) in enumerate(self.updates):
            arrays[f"{number}/step"] = np.asarray(step)
            arrays |= {f"{number}/before/{leaf}": values for leaf, values in before.items()}
            arrays |= {f"{number}/after/{leaf}": values for leaf, values in after.items()}
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]


def _sketch(params: Any) -> dict[str, NDArray[Any]]:
    return {leaf: _thinned(leaf, values) for leaf, values in leaves_by_path(params).items()}


def _thinned(leaf: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.size <= LARGEST:
        return np.array(values)
    flat = values.astype(np.float64).ravel()
    chosen = np.random.default_rng(zlib.crc32(leaf.encode())).integers(flat.size, size=LARGEST)
    return np.concatenate([flat[chosen], [flat.sum(), np.square(flat).sum()]])


def run_command(command: Sequence[str]) -> None:
    """Run `python script.py …` or `python -m module …` in this process."""
    words = list(command)
    if Path(words[0]).name.startswith("python"):
        words = words[1:]
    if words[:1] == ["-m"]:
        sys.argv = words[1:]
        sys.path.insert(0, "")
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        runpy.run_path(words[0], run_name="__main__")


def _script(command: Sequence[str]) -> Path | None:
    """The file that a command runs, if it names one."""
    return next((Path(word) for word in command if word.endswith(".py") and Path(word).is_file()), None)


def main() -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--side", choices=("legacy", "modern"), required=True)
    parser.add_argument("--parent", type=int, default=os.getppid())
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    end_with(options.parent)
    recorder = Recorder()
    # Not for a while as `precise` does: callbacks come in threads of their own.
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    try:
        with recording(recorder, options.side == "legacy"):
            import_packages(_script(options.command))
            with precise(), parameters_in_float64():
                run_command(options.command)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    finally:
        recorder.save(options.out)


if __name__ == "__main__":
    main()
