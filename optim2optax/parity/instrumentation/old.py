"""As `today`, in a process of an interpreter that has the old Flax and JAX: Python 3.8."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from optim2optax.parity.instrumentation.shadow import shadow
from optim2optax.parity.recording.process import begin, finish_at_exit
from optim2optax.parity.recording.recorder import Recorder
from optim2optax.parity.running.worker import (
    compute_in_float64,
    draw_as_today,
    jnp,
    leaves,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def record(side: Mapping[str, Any], foreign: Callable[[], Sequence[str]]) -> None:
    """Record the steps of this process from now on, and compute in float64 if the side says so.

    `foreign` gives the modules that were loaded from the user's own tree.
    """
    draw_as_today()
    if side["wide"]:
        compute_in_float64()
    recorder = Recorder(side, lambda tree: dict(leaves(tree)))
    begin(recorder, side)
    if side["wide"]:
        jnp.float32, jnp.int32 = jnp.float64, jnp.int64

    def last() -> None:
        # Steps in float32 are computed anew in float64, to be compared with those of the new side.
        if side["inputs"] and not side["wide"]:
            compute_in_float64()
            jnp.float32, jnp.int32 = jnp.float64, jnp.int64
            shadow(Path(side["out"]), recorder)

    finish_at_exit(recorder, foreign, last)
