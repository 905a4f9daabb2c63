"""As `today`, in a process of an interpreter that has the old Flax and JAX: Python 3.8."""

from __future__ import annotations

import atexit
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optim2optax.parity.instrumentation.shadow import shadow
from optim2optax.parity.recording.observing import listen
from optim2optax.parity.recording.process import finish_at_exit, import_packages, script
from optim2optax.parity.recording.recorder import Recorder
from optim2optax.parity.recording.recording import recording
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

    Args:
        side: the facts of the side, as `Side` writes them.
        foreign: gives the modules that were loaded from the user's own tree.
    """
    draw_as_today()
    if side["wide"]:
        compute_in_float64()
    recorder = Recorder(
        Path(side["out"]), lambda tree: dict(leaves(tree)), side["inputs"]
    )
    stack = ExitStack()
    stack.enter_context(
        recording(
            recorder,
            legacy=True,
            start=recorder.start,
            part=recorder.part,
            beside=recorder.beside,
            rounding=side["rounding"],
            wide=side["wide"],
        )
    )
    listen(recorder.observe)
    copies = [copy for _, copy in side["copies"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_packages(script(copies))
    if side["wide"]:
        jnp.float32, jnp.int32 = jnp.float64, jnp.int64
    atexit.register(stack.close)

    def last() -> None:
        # Steps in float32 are computed anew in float64, to be compared with those of the new side.
        if side["inputs"] and not side["wide"]:
            compute_in_float64()
            jnp.float32, jnp.int32 = jnp.float64, jnp.int64
            shadow(Path(side["out"]), recorder)
        found = foreign()
        if found:
            recorder.writer.write({"foreign": list(found)})

    finish_at_exit(last)
