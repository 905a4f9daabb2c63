"""The open loop of a command: gradients of the old side, replayed into the new transformations.

A transformation cannot leave the process that made it, so each process of the new side does this
at its end, and writes the replays beside its steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.instrumentation.shadow import write_replays
from optim2optax.parity.recording.inputs import Inputs, read_inputs, why_not
from optim2optax.parity.recording.recorder import Recorder
from optim2optax.parity.recording.sketch import Part
from optim2optax.parity.replaying import correspondence, replayed

Parts: TypeAlias = Mapping[Part, NDArray[Any]]

SAME_GRADIENTS = 1e-6
"""The part of the largest gradient by which the first gradients of both sides may be apart.

If they are further apart, the two sides give their optimizers other gradients.
"""

SAME_IN_FLOAT32 = 1e-3
"""The same where both computed them in float32."""

OTHER_GRADIENTS = (
    "the two sides give their optimizers other gradients, "
    "as if one were to clip or to average them itself"
)


def replay(folder: Path, recorder: Recorder) -> None:
    """Replay the steps that the old side recorded in a folder, and write the results.

    Where there can be none, write the reason. Where both sides ran in float32, recorded values are
    widened.
    """
    widened = not recorder.wide
    lost, found = read_inputs(folder)
    for kind, states in recorder.met.items():
        inputs = found.get(kind, Inputs())
        state = next(iter(states.values()))
        if len(states) == 1 and inputs.made_of:
            corresponding = [
                # opt_state/0/mu/kernel, state/param_states/kernel/grad_ema
                ("/".join(new), "/".join(old), sign)
                for new, old, sign in correspondence(inputs.made_of, state)
            ]
            recorder.writer.write({"kind": kind, "corresponding": corresponding})
        apart = SAME_IN_FLOAT32 if widened else SAME_GRADIENTS
        own = recorder.first_gradients.get(kind, {})
        reason = why_not(lost, inputs.steps, len(states))
        # One side may clip its gradients ahead of the optimizer, the other within it.
        if not reason and not _are_close(inputs.steps[0].gradients, own, apart):
            reason = OTHER_GRADIENTS
        if not reason:
            take = partial(replayed, state.tx)
            # A transformation of the user's own may need more than gradients.
            try:
                write_replays(recorder, state.params, inputs.steps, widened, take)
            except Exception as error:  # noqa: BLE001 - what a user's code raises is the reason
                reason = f"{type(error).__name__}: {error}"
        if reason:
            recorder.writer.write({"kind": kind, "not_replayed": reason})


def _are_close(old: Parts, new: Parts, apart: float) -> bool:
    """Whether gradients are apart by at most a part of the largest one."""
    if old.keys() != new.keys():
        return False
    sizes = [float(np.max(np.abs(values), initial=0.0)) for values in old.values()]
    limit = apart * max(sizes, default=0.0)

    def is_close(part: Part) -> bool:
        return np.allclose(old[part], new[part], rtol=0.0, atol=limit, equal_nan=True)

    return all(map(is_close, old))
