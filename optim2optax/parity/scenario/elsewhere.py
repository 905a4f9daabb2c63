"""The old side of a scenario, run under another interpreter."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.running.devices import flags_for_old_xla
from optim2optax.parity.running.interpreter import WORKER
from optim2optax.parity.running.processes import run_whole

LAST_LINES = 15
"""The number of lines of a traceback that are told."""

REPLAY = "replay"
"""The key under which the worker says whether the scenario replays recorded gradients."""

Values = dict[str, NDArray[Any]]
"""What a scenario yields at once, as arrays by leaf path."""


class LegacyRunError(RuntimeError):
    """The old side failed under the other interpreter; the message ends with its traceback."""


def drive_elsewhere(
    python: Path, scenario: Path, before: Path, steps: int | None
) -> tuple[list[Values], bool]:
    """Run the old side of a scenario under another interpreter.

    Returns:
        What it yielded, and whether it is a replay of recorded gradients.

    Raises:
        LegacyRunError: if it failed there.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "values.npz")
        # The worker ends when the process with this number has ended.
        arguments = (scenario, before, out, steps or 0, os.getpid())
        words = [str(python), str(WORKER)]
        words += [str(argument) for argument in arguments]
        environment = {**os.environ, "XLA_FLAGS": flags_for_old_xla()}
        code, errors = run_whole(words, environment=environment)
        if code:
            last = errors.strip().splitlines()[-LAST_LINES:]
            lines = "\n".join(last)
            raise LegacyRunError(f"the old side failed under {python}:\n{lines}")
        return _read(out)


def _read(out: Path) -> tuple[list[Values], bool]:
    """What the worker wrote: the values in order, and whether they are of a replay."""
    values: dict[int, Values] = {}
    with np.load(out) as arrays:
        for key in arrays.files:
            if key == REPLAY:
                continue
            # `7/Dense_0/kernel` is a leaf of the eighth value.
            number, _, leaf = key.partition("/")
            values.setdefault(int(number), {})[leaf] = arrays[key]
        replay = bool(arrays[REPLAY])
    in_order = [values[number] for number in sorted(values)]
    return in_order, replay
