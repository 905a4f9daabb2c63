"""The inputs of steps, written whole, so that another transformation can take the same steps."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from flax.traverse_util import unflatten_dict

from optim2optax.parity.recording.any_optimizer import kind_from
from optim2optax.parity.recording.stream import INPUTS, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from optim2optax.parity.recording.any_optimizer import Kind
    from optim2optax.parity.recording.sketch import Part

    Parts = Mapping[Part, NDArray[Any]]


def digest_of(arrays: Iterable[Any]) -> bytes:
    """What tells arrays from others of their number and shapes."""
    content = hashlib.blake2b()
    for values in arrays:
        content.update(np.asarray(values).tobytes())
    return content.digest()


class Step(NamedTuple):
    """A step of an old optimizer: its inputs, and the parameters after it, if they are known.

    The inputs are its number, from 0 on, the learning rate that it was given (NaN if none), the
    parameters ahead of it, and its gradients. These are trees, or the parts of a record.
    """

    number: int
    rate: float
    before: Any
    gradients: Any
    after: Any = None


@dataclass
class Inputs:
    """The inputs of one optimizer.

    They are those of its steps in order, and a nested state dict with the shapes of its state.
    """

    steps: list[Step] = field(default_factory=list)
    made_of: dict[str, Any] = field(default_factory=dict)


def read_inputs(folder: Path) -> tuple[bool, dict[Kind, Inputs]]:
    """The inputs that a side recorded in a folder, by the kinds of parameters.

    The first value says whether its state or hyperparameters do not follow from its steps. The
    same steps of several processes count once.
    """
    lost = False
    found: dict[Kind, Inputs] = {}
    seen: set[tuple[Kind, int, bytes]] = set()
    for path in sorted(folder.glob("*" + INPUTS)):
        for facts, arrays in read(path):
            lost |= "lost" in facts
            if "kind" not in facts:
                continue
            kind = kind_from(facts)
            inputs = found.setdefault(kind, Inputs())
            if "made_of" in facts:
                inputs.made_of = _state_dict(facts["made_of"])
                continue
            given, gradients = arrays["given"], arrays["gradients"]
            step = Step(facts["step"], facts["rate"], given, gradients)
            # Several processes, or devices of one, take the same step.
            digest = digest_of([*given.values(), *gradients.values()])
            if (kind, step.number, digest) not in seen:
                seen.add((kind, step.number, digest))
                inputs.steps.append(step)
    for inputs in found.values():
        inputs.steps.sort(key=lambda step: step.number)
    return lost, found


def _state_dict(made_of: Sequence[tuple[Sequence[str], Sequence[int]]]) -> Any:
    """A state dict of leaves of these shapes, which take no memory."""
    nothing = np.zeros(())
    leaves = {tuple(path): np.broadcast_to(nothing, shape) for path, shape in made_of}
    return unflatten_dict(leaves)  # type: ignore[no-untyped-call]


def why_not(lost: bool, steps: Sequence[Step], optimizers: int) -> str:
    """Why the gradients of an optimizer cannot be replayed; empty if they can."""
    numbers = [step.number for step in steps]
    # A GAN may have two of one kind: each number comes twice, with other gradients.
    if optimizers > 1 or len(set(numbers)) < len(numbers):
        return "several optimizers have parameters of these names and shapes"
    if not steps:
        return "the old side has no gradients of it that were kept whole"
    if lost:
        return "the old side sets states or hyperparameters of its optimizers by hand"
    # A run that goes on from a checkpoint begins with a later step.
    if numbers != list(range(len(numbers))):
        return "its first steps are not those of a new optimizer"
    return ""


def as_trees(step: Step, like: Any, names: Sequence[str], wide: bool) -> Step:
    """A recorded step with trees like another one, whose leaves have these names.

    With `wide`, arrays in float32 become float64.
    """
    structure = jax.tree_util.tree_structure(like)

    def as_tree(parts: Parts) -> Any:
        leaves = {part.leaf: values for part, values in parts.items()}
        if wide:
            for name, values in leaves.items():
                if values.dtype == np.float32:
                    leaves[name] = values.astype(np.float64)
        return jax.tree_util.tree_unflatten(structure, [leaves[name] for name in names])

    before = as_tree(step.before)
    return step._replace(before=before, gradients=as_tree(step.gradients))
