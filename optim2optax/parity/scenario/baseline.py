"""Old sides of scenarios that do not run in this process.

They run under another interpreter, or were run once and kept in a file, with which later runs are
compared.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.running.devices import flags_for_old_xla
from optim2optax.parity.running.interpreter import WORKER
from optim2optax.parity.running.processes import end_of, run_whole, watched
from optim2optax.parity.scenario.driving import as_module
from optim2optax.parity.scenario.tape import Tape

CASES = "cases"
REPLAY = "replay"


class BaselineError(ValueError):
    """A file is no baseline, or has no such scenario, or an old side failed elsewhere."""


def as_bytes(baselines: Mapping[str, Tape]) -> bytes:
    """What old sides yielded, by the names of their cases, as the content of an .npz file."""
    arrays: dict[str, Any] = {CASES: np.asarray(list(baselines))}
    for number, baseline in enumerate(baselines.values()):
        arrays[f"{number}/{REPLAY}"] = np.asarray(baseline.replay)
        for step, leaves in enumerate(baseline.values):
            for leaf, values in leaves.items():
                arrays[f"{number}/{step}/{leaf}"] = values
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def load_baseline(path: Path, case: str) -> Tape:
    """The baseline of a case.

    Raises:
        BaselineError: if the file is no baseline, or has none of this case.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            names = arrays[CASES].tolist()
            if case in names:
                return _read(arrays, f"{names.index(case)}/")
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise BaselineError(f"{path} is no file that --save wrote: {error}") from error
    raise BaselineError(
        f"{path} has no scenario called {case}. Save it anew, with --save."
    )


def drive_elsewhere(python: Path, scenario: Path, before: Path) -> Tape:
    """Run the old side of a scenario under another interpreter.

    Raises:
        BaselineError: if it failed there; the message ends with its traceback.
    """
    with tempfile.TemporaryDirectory() as folder, as_module(before) as module:
        out = Path(folder, "values.npz")
        words = watched(map(str, (python, WORKER, scenario, module, out)))
        environment = {**os.environ, "XLA_FLAGS": flags_for_old_xla()}
        code, errors = run_whole(words, environment=environment)
        if code:
            last = end_of(errors)
            raise BaselineError(f"the old side failed under {python}:\n{last}")
        with np.load(out) as arrays:
            return _read(arrays)


def _read(arrays: Any, prefix: str = "") -> Tape:
    """What an old side yielded, by the arrays of a file whose names have a prefix."""
    values: dict[int, dict[str, NDArray[Any]]] = {}
    for key in arrays.files:
        # `7/Dense_0/kernel` is a leaf of the eighth value.
        step, slash, leaf = key.removeprefix(prefix).partition("/")
        if key.startswith(prefix) and slash:
            values.setdefault(int(step), {})[leaf] = arrays[key]
    tape = Tape()
    tape.values = [values[step] for step in sorted(values)]
    tape.replay = bool(arrays[f"{prefix}{REPLAY}"])
    return tape
