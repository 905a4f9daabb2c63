"""What the steps of one side were computed from, read from its files. An old Python runs this as well, from Python 3.8 on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optim2optax.parity.record import kind_from
from optim2optax.parity.stream import INPUTS, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from optim2optax.parity.record import Kind
    from optim2optax.parity.sketch import Part

    Parts = Mapping[Part, NDArray[Any]]


class GivenStep(NamedTuple):
    """The number of a step from 0 on, the rate that it was given (NaN if none), the parameters ahead of it, and its gradients."""

    number: int
    rate: float
    before: Parts
    gradients: Parts


@dataclass
class Inputs:
    """What was given to one optimizer: its steps in order, and the nested state dict that tells of what its state is made."""

    steps: list[GivenStep] = field(default_factory=list)
    made_of: dict[str, Any] = field(default_factory=dict)


def read_inputs(folder: Path) -> tuple[bool, dict[Kind, Inputs]]:
    """What a side recorded in a folder, by the kinds of parameters, and whether its steps do not tell all.

    What several processes did alike counts once.
    """
    lost = False
    found: dict[Kind, Inputs] = {}
    for path in sorted(folder.glob("*" + INPUTS)):
        for facts, arrays in read(path):
            lost |= "lost" in facts
            if "kind" not in facts:
                continue
            inputs = found.setdefault(kind_from(facts), Inputs())
            if "made_of" in facts:
                inputs.made_of = _nested(facts["made_of"])
                continue
            step = GivenStep(facts["step"], facts["rate"], arrays["given"], arrays["gradients"])
            if not any(_is_same(step, known) for known in inputs.steps):
                inputs.steps.append(step)
    for inputs in found.values():
        inputs.steps.sort(key=lambda step: step.number)
    return lost, found


def _is_same(step: GivenStep, known: GivenStep) -> bool:
    pairs = ((step.before, known.before), (step.gradients, known.gradients))
    return step.number == known.number and all(
        values.tobytes() == others[part].tobytes()
        for parts, others in pairs
        for part, values in parts.items()
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


def why_not(lost: bool, steps: Sequence[GivenStep], optimizers: int) -> str:
    """Why the gradients of an optimizer cannot be replayed; nothing if they can."""
    if optimizers > 1 or len({step.number for step in steps}) < len(steps):
        return "several optimizers have parameters of these names and shapes"
    if not steps:
        return "the old side has no gradients of it that were kept whole"
    if lost:
        return "the old side sets states or hyperparameters of its optimizers by hand"
    if [step.number for step in steps] != list(range(len(steps))):
        return "its first steps are not those of a new optimizer"
    return ""


def as_tree(parts: Parts, like: Any, names: Sequence[str], wide: bool) -> Any:
    """The arrays in a tree like another, whose leaves have these names; with `wide`, float32 ones as float64."""
    from jax.tree_util import tree_structure, tree_unflatten

    leaves = {part.leaf: values for part, values in parts.items()}
    widened = [leaves[name] for name in names]
    if wide:
        widened = [
            values.astype(np.float64) if values.dtype == np.float32 else values
            for values in widened
        ]
    return tree_unflatten(tree_structure(like), widened)
