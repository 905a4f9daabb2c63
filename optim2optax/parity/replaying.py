"""The open loop of a command: the gradients of the old side, replayed into the new side's transformations.

A transformation cannot leave the process that made it, so each process of the new side does this at its end, and writes what came
of it beside its steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.inputs import GivenStep, Inputs, as_tree, read_inputs, why_not
from optim2optax.parity.open_loop import Step, replayed
from optim2optax.parity.record import Recorder
from optim2optax.parity.recorder import unrecorded
from optim2optax.parity.sketch import Part
from optim2optax.parity.states import correspondence

Parts: TypeAlias = Mapping[Part, NDArray[Any]]

SAME_GRADIENTS = 1e-6
"""If the first gradients are further apart than this part of the largest, the two sides hand their optimizers other things."""

SAME_IN_FLOAT32 = 1e-3
"""The same where both computed them in float32."""

OTHER_GRADIENTS = "the two sides give their optimizers other gradients, as if one were to clip or to average them itself"


def replay(folder: Path, recorder: Recorder, widened: bool = False) -> None:
    """Replay what the old side recorded in a folder, and write what comes of it, or why nothing does.

    Args:
        folder: of the old side's records.
        recorder: what this process has recorded.
        widened: whether both sides ran in float32, so that what they recorded is to be widened.
    """
    lost, found = read_inputs(folder)
    for kind, states in recorder.met.items():
        inputs, state = found.get(kind, Inputs()), next(iter(states.values()))
        if len(states) == 1 and inputs.made_of:
            places = correspondence(inputs.made_of, state)
            corresponding = [("/".join(new), "/".join(old), sign) for new, old, sign in places]
            recorder.writer.write({"kind": kind, "corresponding": corresponding})
        reason = why_not(lost, inputs.steps, len(states))
        apart = SAME_IN_FLOAT32 if widened else SAME_GRADIENTS
        if not reason and not _are_alike(
            inputs.steps[0].gradients, recorder.first_gradients.get(kind, {}), apart
        ):
            reason = OTHER_GRADIENTS
        try:
            if not reason:
                _write_replays(recorder, state, inputs.steps, widened)
        except Exception as error:  # noqa: BLE001 - a transformation of the user's own may need more than gradients
            reason = f"{type(error).__name__}: {error}"
        if reason:
            recorder.writer.write({"kind": kind, "not_replayed": reason})


def _are_alike(old: Parts, new: Parts, apart: float) -> bool:
    if old.keys() != new.keys():
        return False
    largest = max(
        (float(np.max(np.abs(values), initial=0.0)) for values in old.values()), default=0.0
    )
    return all(
        np.allclose(values, new[part], 0.0, apart * largest, equal_nan=True)
        for part, values in old.items()
    )


def _write_replays(recorder: Recorder, state: Any, steps: Sequence[GivenStep], wide: bool) -> None:
    names = list(recorder.leaves(state.params))
    taken = [
        Step(
            step.number,
            as_tree(step.before, state.params, names, wide),
            as_tree(step.gradients, state.params, names, wide),
            step.rate,
            None,
        )
        for step in steps
    ]
    with unrecorded():
        for step, moved in zip(taken, replayed(state.tx, taken), strict=True):
            after = {part: np.asarray(values) for part, values in recorder.part(moved).items()}
            recorder.writer.write({"replayed": step.count}, {"after": after})
