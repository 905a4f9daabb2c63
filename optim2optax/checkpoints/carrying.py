"""A legacy optimizer's part of a checkpoint, carried over into the train state that replaces it.

Both are compared as state dicts, which `flax.serialization.to_state_dict` gives: dicts with string
keys, in which a tuple has the keys 0, 1, …. Every leaf of the old one has to find its place, and
every place its leaf; nothing is invented.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from flax import serialization

from codemods.optimizers import optimizers
from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.correspondence import (
    STEP,
    has_interface,
    is_trace,
    nodes_of,
    places_of,
)
from optim2optax.checkpoints.flax_msgpack import Tree
from optim2optax.checkpoints.signs import descending
from optim2optax.checkpoints.state_dict_places import Path, leaves, quoted

AVERAGE = "m"
"""The average of Adafactor. Without it, Adafactor keeps one number in its place."""


PARTS = ("params", "opt_state", "step")
"""What goes on from a legacy optimizer, in this order in a tuple; the steps need not be counted."""


def parts_of(state: Any) -> dict[str, Any]:
    """The parts of a train state, or of a tuple, by their names."""
    if type(state) is tuple:
        # params, opt_state = step(params, opt_state, batch)
        return dict(zip(PARTS, state, strict=False))
    return {name: getattr(state, name) for name in ("step", "params", "opt_state")}


class Carrying:
    """Carries the leaves of a legacy optimizer to their places in what goes on from it.

    Args:
      old: the optimizer in a checkpoint, `{"target": …, "state": {"step": …, "param_states": …}}`.
        It is used up. If it was replicated, and `new` is not, the first of equal copies is taken.
      new: the fresh parts, as the migrated program creates them: `params` and `opt_state`, and
        `step` if the program counts the steps. They say which leaves there have to be; of their
        values, only injected hyperparameters are taken.
      tx: their transformation, if it is known.
      params_only: whether the step and the state of the optimizer stay as they are in `new`.

    Raises:
      CheckpointError: if the state has a trace of which only the transformation would tell the
        sign.
    """

    def __init__(
        self,
        old: Mapping[str, Tree],
        new: Mapping[str, Any],
        tx: Any = None,
        *,
        params_only: bool = False,
    ) -> None:
        self.new = {
            name: serialization.to_state_dict(part) for name, part in new.items()
        }
        kept = [path for path, _ in leaves(self.new["params"])]
        self.sources: dict[Path, Path] = {
            ("params", *path): ("target", *path) for path in kept
        }
        self.negative: set[Path] = set()
        # the program need not count the steps itself
        self.used: set[Path] = set() if "step" in new else {STEP}
        self.leaves = {path: leaf for path, leaf in leaves(old) if leaf is not None}
        self.copies = copies_of(self.leaves.get(STEP))
        if params_only:
            self.used.update(path for path in self.leaves if path[0] != "target")
            return
        self.sources["step",] = STEP
        if has_interface(tx):
            # the state of the definition is that of the transformation
            kept = [path for path, _ in leaves(self.new["opt_state"])]
            self.sources |= {("opt_state", *path): ("state", *path) for path in kept}
        else:
            self._find_sources(new, tx)

    def _find_sources(self, new: Mapping[str, Any], tx: Any) -> None:
        opt_state = new["opt_state"]
        places = places_of(opt_state)
        negated: Collection[Path] = ()
        if tx is None:
            _refuse_unknown_signs(opt_state)
        else:
            negated = descending(tx, new["params"], opt_state)
        for place in places:
            path = ("opt_state", *place.path)
            if place.source is not None:
                self.sources[path] = place.source
            if place.state in negated:
                self.negative.add(path)

    def correspondence(self) -> list[tuple[Path, Path, int]]:
        """The places in the new state, with those in the old one, and the signs."""
        found: list[tuple[Path, Path, int]] = []
        for path, _ in leaves(self.new):
            source = self.sources.get(path, ())
            if source in self.leaves:
                found.append((path, source, -1 if path in self.negative else 1))
        return found

    def carried(self) -> dict[str, Any]:
        """State dicts of the parts, for `flax.serialization.from_state_dict`.

        Raises:
          CheckpointError: if a leaf has no place, or a place no leaf, or one of another shape, or
            if copies differ.
        """
        values = {path: self._value(path, place) for path, place in leaves(self.new)}
        found: dict[str, Any] = put(values, self.new)
        unused = self.leaves.keys() - self.used
        left = sorted(path for path in unused if not self._is_placeholder(path))
        if left:
            raise CheckpointError(
                f"{quoted(left[0])} has no place in the new state: does it have the same optimizer?"
            )
        return found

    def _value(self, path: Path, place: Any) -> Any:
        source = self.sources.get(path)
        # an injected hyperparameter, or an average that neither side keeps
        if source is None or (place is None and source not in self.leaves):
            return place
        if source not in self.leaves:
            raise CheckpointError(
                f"{quoted(path)} of the new state is not in the checkpoint, "
                f"which would have it at {quoted(source)}."
            )
        # several states of optax may count the steps
        if source in self.used and source != STEP:
            raise CheckpointError(
                f"{quoted(path)} is one of several places in the new state for {quoted(source)}."
            )
        self.used.add(source)
        value = fitted(self.leaves[source], place, path, self.copies)
        if path in self.negative:
            # in place where possible: the traces may be half of the checkpoint
            out = value if value.flags.writeable else None
            return np.negative(value, out=out)
        return value

    def _is_placeholder(self, path: Path) -> bool:
        """Whether this stands for an average that Adafactor does not keep."""
        if path[-1] != AVERAGE:
            return False
        # a parameter may be called `m`, too, without what Adafactor keeps beside an average
        param_state = path[:-1]
        kept = optimizers()["Adafactor"].state
        if not all((*param_state, field) in self.leaves for field in kept):
            return False
        value = self.leaves[path]
        return isinstance(value, np.ndarray) and value.shape in ((1,), (self.copies, 1))


def _refuse_unknown_signs(opt_state: Any) -> None:
    """Refuse a trace whose sign the state of optax does not tell.

    A trace at the beginning of its chain accumulates gradients. One behind others may be behind the
    learning rate, and accumulate updates, which have the opposite sign.
    """
    for path, node in nodes_of(opt_state, is_trace).items():
        # optax.chain(optax.trace(0.9), …) has its trace at "0"
        if path and path[-1].isdigit() and path[-1] != "0":
            first = next(
                (below for below, _ in leaves(serialization.to_state_dict(node))), ()
            )
            place = quoted(("opt_state", *path, *first))
            raise CheckpointError(
                f"{place} of the new state may follow the way up or down, which a state of optax "
                "alone does not tell: give a TrainState with the same parameters and "
                "transformation, and take both from it."
            )


def copies_of(step: Tree) -> int | None:
    """The number of copies of a replicated optimizer, by its step; None if it is not replicated."""
    if isinstance(step, np.ndarray) and step.ndim == 1 and step.size:
        return len(step)
    return None


def fitted(value: Any, place: Any, path: Path, copies: int | None) -> Any:
    """A value for a place of the new state: itself, or the first of its equal copies.

    Raises:
      CheckpointError: if neither has the shape of the place, or the copies differ.
    """
    shape = np.shape(value)
    wanted = np.shape(place)
    if shape == wanted:
        return value
    if copies is None or shape != (copies, *wanted):
        raise CheckpointError(
            f"{quoted(path)} has the shape {shape} in the checkpoint, and {wanted} in the "
            "new state."
        )
    first = value[0].tobytes()
    if any(copy.tobytes() != first for copy in value[1:]):
        raise CheckpointError(
            f"{quoted(path)} has {copies} copies in the checkpoint, which differ, and one in the "
            "new state: if they are the members of an ensemble, give a state with as many."
        )
    return value[0]


def put(values: Mapping[Path, Any], like: Any, path: Path = ()) -> Any:
    """The values in a tree like another one."""
    if isinstance(like, Mapping):
        return {key: put(values, value, (*path, key)) for key, value in like.items()}
    return values[path]
