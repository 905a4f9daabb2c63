"""A legacy optimizer's part of a checkpoint, carried over into the train state that has taken its place.

Both are compared as state dicts, which `flax.serialization.to_state_dict` gives: dicts with string keys, in which a tuple has the
keys 0, 1, …. Every leaf of the old one has to find its place, and every place its leaf; nothing is invented.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import jax
import numpy as np
from flax import serialization
from flax.training.train_state import TrainState

from codemods.optimizers.base import RATE
from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.contents import TRAIN_STATE
from optim2optax.checkpoints.earlier_flax import renewed
from optim2optax.checkpoints.flax_msgpack import Array, Tree
from optim2optax.checkpoints.places import WEIGHT_NORM, Path, by_new_field, field_of, leaves, said

COUNT = "count"
INJECTED = ("hyperparams", "hyperparams_states")
"""Where `optax.inject_hyperparams` keeps what the program sets at each step: the old checkpoint has nothing of it."""

STEP = ("state", "step")


TRACE = "trace"


def carried(old: Mapping[str, Tree], state: TrainState) -> dict[str, Any]:
    """The state dict of a train state that goes on from a legacy optimizer.

    Args:
      old: what a checkpoint has of the optimizer, `{"target": …, "state": {"step": …, "param_states": …}}`, which is used up. Of
        one that was replicated, for a state that is not, the first copy is taken.
      state: a fresh train state, as the migrated program creates it. It says what there has to be; of its values, only injected
        hyperparameters are taken.

    Returns:
      What `flax.serialization.from_state_dict` makes a state of, without the fields that `state` has beside those of a
      `TrainState`.

    Raises:
      CheckpointError: if a leaf has no place, or a place no leaf, or one of another shape.
    """
    new = {name: value for name, value in serialization.to_state_dict(state).items() if name in TRAIN_STATE}
    if hasattr(
        state.tx, "update_hyper_params"
    ):  # it keeps the interface of its definition, and so the state that it had
        return _Carrying(old, new, keeps_state=True).carried()
    return _Carrying(old, new, _descending(state)).carried()


def carried_parts(old: Mapping[str, Tree], new: Mapping[str, Any]) -> dict[str, Any]:
    """The state dicts of parameters and a state of optax that go on from a legacy optimizer without a train state.

    Args:
      old: as for `carried`.
      new: the fresh ones, as `params` and `opt_state`, and as `step` if the program counts the steps.

    Raises:
      CheckpointError: as for `carried`, and if the state has a trace of which only the transformation would tell the sign.
    """
    for path, _ in leaves(new["opt_state"]):
        before = path[path.index(TRACE) - 1] if TRACE in path[1:] else "0"
        if before.isdigit() and before != "0":
            raise CheckpointError(
                f"{said(('opt_state', *path))} of the new state may follow the way up or down, which a state of optax alone "
                "does not tell: give a TrainState with the same parameters and transformation, and take both from it."
            )
    carrying = _Carrying(old, new)
    carrying.used.add(STEP)
    return carrying.carried()


def _descending(state: TrainState) -> set[Path]:
    """The traces that follow the way down, as that of LARS does behind the learning rate, where legacy had the way up.

    A step with gradients of ones tells, at a rate that is not zero.
    """
    ones = jax.tree_util.tree_map(
        lambda leaf: np.ones([min(size, 2) for size in np.shape(leaf)], jax.dtypes.result_type(leaf)), state.params
    )
    begun = jax.tree_util.tree_map_with_path(_begun, state.tx.init(ones))
    _, stepped = state.tx.update(ones, begun, ones)
    traces: dict[Path, list[tuple[Path, Any]]] = defaultdict(list)
    for path, leaf in leaves(serialization.to_state_dict(stepped), ("opt_state",)):
        if TRACE in path:
            traces[path[: path.index(TRACE)]].append((path, np.asarray(leaf)))
    return {
        path
        for found in traces.values()
        if any(np.any(leaf < 0) for _, leaf in found) and not any(np.any(leaf > 0) for _, leaf in found)
        for path, _ in found
    }


def _begun(path: tuple[Any, ...], leaf: Any) -> Any:
    """A leaf of a state behind the first step of a warm-up, and with a rate where that is injected."""
    name = getattr(path[-1], "name", getattr(path[-1], "key", None))
    return np.ones_like(leaf) if name in (COUNT, RATE) else leaf


class _Carrying:
    def __init__(
        self,
        old: Mapping[str, Tree],
        new: Mapping[str, Any],
        descending: Collection[Path] = (),
        keeps_state: bool = False,
    ) -> None:
        self.new = new
        self.descending = descending
        self.keeps_state = keeps_state
        self.used: set[Path] = set()
        self.leaves = {path: leaf for path, leaf in leaves(renewed(old, new)) if leaf is not None}
        self.params = {path[1:]: leaf for path, leaf in self.leaves.items() if path[0] == "target"}
        self.takes_first = self._is_replicated() and not self._has_copies()

    def carried(self) -> dict[str, Any]:
        found: dict[str, Any] = _put({path: self._value(path, place) for path, place in leaves(self.new)}, self.new)
        left = sorted(path for path in self.leaves.keys() - self.used if not self._is_placeholder(path))
        if left:
            raise CheckpointError(f"{said(left[0])} has no place in the new state: does it have the same optimizer?")
        return found

    def _is_replicated(self) -> bool:
        """Whether all leaves have a leading axis of the same size, which is that of the step alone."""
        step = self.leaves.get(STEP)
        return (
            isinstance(step, Array)
            and len(step.shape) == 1
            and bool(step.nbytes)
            and all(isinstance(leaf, Array) and leaf.shape[:1] == step.shape for leaf in self.leaves.values())
        )

    def _has_copies(self) -> bool:
        """Whether the parameters of the new state have a leading axis, too."""
        return any(
            isinstance(old := self.params.get(path), Array) and np.shape(place) == old.shape
            for path, place in leaves(self.new["params"])
        )

    def _value(self, path: Path, place: Any) -> Any:
        source = self._source(path)
        if source is None or (place is None and source not in self.leaves):
            return place
        if source not in self.leaves:
            raise CheckpointError(
                f"{said(path)} of the new state is not in the checkpoint, which would have it at {said(source)}."
            )
        self.used.add(source)
        value = as_numpy(self.leaves[source])
        if self.takes_first:
            value = value[0]
        if source != STEP and np.shape(value) != np.shape(place):
            shapes = f"{np.shape(value)} in the checkpoint, and {np.shape(place)} in the new state"
            raise CheckpointError(f"{said(path)} has the shape {shapes}.")
        if path in self.descending:  # in place, where that can be: it may be half of what was read
            return np.negative(value, out=value if value.flags.writeable else None)
        return value

    def _source(self, path: Path) -> Path | None:
        """Where the old state has what the new one has at a path; None for what stays as the new one has it."""
        head, *rest = path
        if head == "params":
            return ("target", *rest)
        if head == "step":
            return STEP
        if self.keeps_state:
            return ("state", *rest)
        if (found := field_of(tuple(rest), self.params)) is not None:
            return self._of_parameter(*found)
        if any(word in rest for word in INJECTED):
            return STEP if path[-1] == COUNT else None
        if path[-1] == COUNT:
            return STEP
        raise CheckpointError(f"{said(path)} of the new state is none of a parameter, and nothing tells what it is.")

    def _of_parameter(self, place: Path, param: Path) -> Path:
        """Where the old state has a field of a parameter, which the new one has at a place."""
        kept, words = ("state", "param_states", *param), [word for word in place if not word.isdigit()]
        part = words[-1]
        if part in WEIGHT_NORM:
            if len(words) > 1 and words[-2] in by_new_field():
                below = (*kept, f"{part}_state")
                return (*below, self._field(below, words[-2]))
            return (*kept, part)
        return (*kept, self._field(kept, part))

    def _field(self, kept: Path, new: str) -> str:
        """The old name of a field that the new state calls otherwise; among several, the one that is there."""
        names = by_new_field().get(new, ())
        return next((name for name in names if (*kept, name) in self.leaves), names[0] if names else new)

    def _is_placeholder(self, path: Path) -> bool:
        """Whether this stands for an average of Adafactor that is not kept."""
        value = self.leaves[path]
        return path[-1] in ("m", "v", "v_row", "v_col") and isinstance(value, Array) and value.shape == (1,)


def as_numpy(leaf: Tree) -> Any:
    """A leaf as Flax would read it: an array of NumPy, which is no copy."""
    if not isinstance(leaf, Array):
        return leaf
    return np.frombuffer(leaf.data, leaf.dtype).reshape(leaf.shape)


def _put(values: Mapping[Path, Any], like: Any, path: Path = ()) -> Any:
    """The values in a tree like another one."""
    if isinstance(like, Mapping):
        return {key: _put(values, value, (*path, key)) for key, value in like.items()}
    return values[path]
