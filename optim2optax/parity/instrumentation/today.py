"""Record every update that a process applies, from inside jitted and pmapped code too.

`hook/sitecustomize.py` calls `record` when the user's program is about to import JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from optim2optax.legacy import legacy_flax
from optim2optax.parity.instrumentation.shadow import shadow
from optim2optax.parity.judging.movement import named_leaves
from optim2optax.parity.recording.process import begin, finish_at_exit, until_exit
from optim2optax.parity.recording.recorder import Recorder
from optim2optax.precision import parameters_in_float64, precise


def record(side: Mapping[str, Any], foreign: Callable[[], Sequence[str]]) -> None:
    """Record the steps of this process from now on, and compute in float64 if the side says so.

    `foreign` gives the modules that were loaded from the user's own tree.
    """
    recorder = Recorder(side, named_leaves)
    # Not by `precise`, which changes one thread: callbacks and training loops may have others.
    jax.config.update("jax_enable_x64", side["wide"])  # type: ignore[no-untyped-call]
    jax.config.update("jax_default_matmul_precision", "highest")  # type: ignore[no-untyped-call]
    if side["legacy"]:
        until_exit(legacy_flax())
    begin(recorder, side)
    if side["wide"]:
        until_exit(precise())
        until_exit(parameters_in_float64())

    def last() -> None:
        # The new side replays the gradients of the old one.
        if side["replays"]:
            from optim2optax.parity.instrumentation.replays import replay

            with precise():
                replay(Path(side["replays"]), recorder)
        # The old side takes its own steps in float32 once more.
        elif side["inputs"] and not side["wide"]:
            with precise():
                shadow(Path(side["out"]), recorder)

    finish_at_exit(recorder, foreign, last)
