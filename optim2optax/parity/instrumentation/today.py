"""Record every update that a process applies, from inside jitted and pmapped code too.

`hook/sitecustomize.py` calls `record` when the user's program is about to import JAX.
"""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax

from optim2optax.legacy import legacy_flax
from optim2optax.parity.instrumentation.shadow import shadow
from optim2optax.parity.judging.leaves import name_of
from optim2optax.parity.recording.observing import listen
from optim2optax.parity.recording.process import finish_at_exit, import_packages, script
from optim2optax.parity.recording.recorder import Recorder
from optim2optax.parity.recording.recording import recording
from optim2optax.precision import parameters_in_float64, precise


def record(side: Mapping[str, Any], foreign: Callable[[], Sequence[str]]) -> None:
    """Record the steps of this process from now on, and compute in float64 if the side says so.

    Args:
        side: the facts of the side, as `Side` writes them.
        foreign: gives the modules that were loaded from the user's own tree.
    """
    recorder = Recorder(Path(side["out"]), leaves, side["inputs"])
    stack = ExitStack()
    # Not by `precise`, which changes one thread: callbacks and training loops may have others.
    jax.config.update("jax_enable_x64", side["wide"])  # type: ignore[no-untyped-call]
    jax.config.update("jax_default_matmul_precision", "highest")  # type: ignore[no-untyped-call]
    if side["legacy"]:
        stack.enter_context(legacy_flax())
    stack.enter_context(
        recording(
            recorder,
            legacy=side["legacy"],
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
        stack.enter_context(precise())
        stack.enter_context(parameters_in_float64())
    atexit.register(stack.close)

    def last() -> None:
        # The new side replays the gradients of the old one.
        if side["replays"]:
            from optim2optax.parity.instrumentation.replays import replay

            with precise():
                replay(Path(side["replays"]), recorder, widened=not side["wide"])
        # The old side takes its own steps in float32 once more.
        elif side["inputs"] and not side["wide"]:
            with precise():
                shadow(Path(side["out"]), recorder)
        if found := foreign():
            recorder.writer.write({"foreign": list(found)})

    finish_at_exit(last)


def leaves(tree: Any) -> dict[str, Any]:
    """The leaves of a tree, which may be traced, by paths such as `Dense_0/kernel`."""
    paths_and_leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {name_of(path): leaf for path, leaf in paths_and_leaves}
