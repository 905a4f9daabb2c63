"""The open loop of a command: the gradients of the old side, replayed into the new side's transformations.

A transformation cannot leave the process that made it, so each process of the new side does this at its end, and writes what came
of it beside its steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from optim2optax.parity.open_loop import Step, replayed
from optim2optax.parity.record import Recorder, kind_from
from optim2optax.parity.recorder import unrecorded
from optim2optax.parity.sketch import Part
from optim2optax.parity.states import correspondence
from optim2optax.parity.stream import INPUTS, read
from optim2optax.parity.updates import Kind

Parts: TypeAlias = Mapping[Part, NDArray[Any]]

SAME_GRADIENTS = 1e-6
"""If the first gradients are further apart than this part of the largest, the two sides hand their optimizers other things."""

OTHER_GRADIENTS = (
    "the two sides give their optimizers other gradients, as if one were to clip or to average them itself"
)


@dataclass
class Inputs:
    """What the old side gave to one of its optimizers: the arrays, and the rate, of each step; and of what its state is made."""

    steps: list[tuple[int, float, Parts, Parts]] = field(default_factory=list)
    made_of: dict[str, Any] = field(default_factory=dict)


def replay(folder: Path, recorder: Recorder) -> None:
    """Replay what the old side recorded in a folder, and write what comes of it, or why nothing does.

    Args:
        folder: of the old side's records.
        recorder: what this process has recorded.
    """
    lost, found = _read_inputs(folder)
    for kind, states in recorder.met.items():
        inputs = found.get(kind, Inputs())
        if len(states) == 1 and inputs.made_of:
            state = next(iter(states.values()))
            corresponding = [
                ("/".join(new), "/".join(old), sign) for new, old, sign in correspondence(inputs.made_of, state)
            ]
            recorder.writer.write({"kind": kind, "corresponding": corresponding})
        steps = sorted(inputs.steps, key=lambda step: step[0])
        reason = _why_not(lost, steps, len(states), recorder.first_gradients.get(kind, {}))
        try:
            if not reason:
                _write_replays(recorder, next(iter(states.values())), steps)
        except Exception as error:  # noqa: BLE001 - a transformation of the user's own may need more than gradients
            reason = f"{type(error).__name__}: {error}"
        if reason:
            recorder.writer.write({"kind": kind, "not_replayed": reason})


def _why_not(lost: bool, steps: Sequence[tuple[int, float, Parts, Parts]], transformations: int, first: Parts) -> str:
    """Why the gradients of an optimizer cannot be replayed; nothing if they can."""
    if transformations > 1 or len({step for step, *_ in steps}) < len(steps):
        return "several optimizers have parameters of these names and shapes"
    if not steps:
        return "the old side has no gradients of it that were kept whole"
    if lost:
        return "the old side sets states or hyperparameters of its optimizers by hand"
    if [step for step, *_ in steps] != list(range(len(steps))):
        return "its first steps are not those of a new optimizer"
    if not _are_alike(steps[0][3], first):
        return OTHER_GRADIENTS
    return ""


def _are_alike(old: Parts, new: Parts) -> bool:
    if old.keys() != new.keys():
        return False
    largest = max((float(np.max(np.abs(values), initial=0.0)) for values in old.values()), default=0.0)
    return all(
        np.allclose(values, new[part], 0.0, SAME_GRADIENTS * largest, equal_nan=True) for part, values in old.items()
    )


def _write_replays(recorder: Recorder, state: Any, steps: Sequence[tuple[int, float, Parts, Parts]]) -> None:
    names, form = list(recorder.leaves(state.params)), jax.tree_util.tree_structure(state.params)

    def tree(parts: Parts) -> Any:
        leaves = {part.leaf: values for part, values in parts.items()}
        return jax.tree_util.tree_unflatten(form, [leaves[name] for name in names])

    taken = [Step(step, tree(before), tree(gradients), rate, None) for step, rate, before, gradients in steps]
    with unrecorded():
        for step, moved in zip(taken, replayed(state.tx, taken), strict=True):
            after = {part: np.asarray(values) for part, values in recorder.part(moved).items()}
            recorder.writer.write({"replayed": step.count}, {"after": after})


def _read_inputs(folder: Path) -> tuple[bool, dict[Kind, Inputs]]:
    """What the old side recorded, and whether its steps do not tell all. What several processes did alike counts once."""
    lost, found = False, defaultdict[Kind, Inputs](Inputs)
    for path in sorted(folder.glob(f"*{INPUTS}")):
        for facts, arrays in read(path):
            lost |= "lost" in facts
            if "kind" not in facts:
                continue
            inputs = found[kind_from(facts)]
            if "made_of" in facts:
                inputs.made_of = _nested(facts["made_of"])
            elif not any(_is_same(facts["step"], arrays, known) for known in inputs.steps):
                inputs.steps.append((facts["step"], facts["rate"], arrays["given"], arrays["gradients"]))
    return lost, found


def _is_same(step: int, arrays: Mapping[str, Parts], known: tuple[int, float, Parts, Parts]) -> bool:
    pairs = ((arrays["given"], known[2]), (arrays["gradients"], known[3]))
    return step == known[0] and all(
        values.tobytes() == other[part].tobytes() for parts, other in pairs for part, values in parts.items()
    )


def _nested(made_of: Sequence[tuple[Sequence[str], Sequence[int]]]) -> dict[str, Any]:
    """A state dict of leaves of these shapes, which take no memory."""
    root: dict[str, Any] = {}
    for path, shape in made_of:
        place = root
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = np.broadcast_to(np.zeros(()), tuple(shape))
    return root
