"""A legacy optimizer's part of a checkpoint, carried over into the train state that has taken its place.

Both are compared as state dicts, which `flax.serialization.to_state_dict` gives: dicts with string keys, in which a tuple has the
keys 0, 1, …. Every leaf of the old one has to find its place, and every place its leaf; nothing is invented.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import numpy as np
from flax import serialization
from flax.training.train_state import TrainState

from codemods.optimizers import optimizers
from codemods.optimizers.base import RATE
from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.contents import COMPOSITE, TRAIN_STATE
from optim2optax.checkpoints.flax_msgpack import Array, Tree

Path = tuple[str, ...]

COUNT = "count"
INJECTED = ("hyperparams", "hyperparams_states")
"""Where `optax.inject_hyperparams` keeps what the program sets at each step: the old checkpoint has nothing of it."""

STEP = ("state", "step")
WEIGHT_NORM = ("direction", "scale")


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
    return _Carrying(old, _descending(state), not np.shape(state.step)).into(new)


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
    for path, leaf in _leaves(serialization.to_state_dict(stepped), ("opt_state",)):
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


@dataclass
class _Carrying:
    old: Mapping[str, Tree]
    descending: set[Path]
    is_single: bool
    used: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.leaves = {path: leaf for path, leaf in _leaves(self.old) if leaf is not None}
        step = self.leaves.get(STEP)
        self.takes_first = self.is_single and isinstance(step, Array) and len(step.shape) == 1
        self.params = {path[1:]: leaf for path, leaf in self.leaves.items() if path[0] == "target"}

    def into(self, new: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = _put({path: self._value(path, place) for path, place in _leaves(new)}, new)
        left = sorted(path for path in self.leaves.keys() - self.used if not self._is_placeholder(path))
        if left:
            raise CheckpointError(f"{said(left[0])} has no place in the new state: does it have the same optimizer?")
        return found

    def _value(self, path: Path, place: Any) -> Any:
        source = self._source(path)
        if source is None:
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
        for length in range(len(rest) - 1, -1, -1):
            words = [word for word in rest[: len(rest) - length] if not word.isdigit()]
            params = tuple(rest[len(rest) - length :])
            if params in self.params and words and words[-1] in (*by_new_field(), *WEIGHT_NORM):
                return self._of_parameter(words, params)
        if any(word in rest for word in INJECTED):
            return STEP if path[-1] == COUNT else None
        if path[-1] == COUNT:
            return STEP
        raise CheckpointError(f"{said(path)} of the new state is none of a parameter, and nothing tells what it is.")

    def _of_parameter(self, words: list[str], params: Path) -> Path:
        """Where the old state has a field of a parameter, which the new one has below some words."""
        kept = ("state", "param_states", *params)
        part = words[-1] if words else ""
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


@cache
def by_new_field() -> Mapping[str, tuple[str, ...]]:
    """The names of what legacy optimizers keep for a parameter, by the name of the field of optax with the same values."""
    found: dict[str, tuple[str, ...]] = {}
    for name, optimizer in optimizers().items():
        for old, new in optimizer.state.items() if name not in (COMPOSITE, "WeightNorm") else ():
            found[new] = tuple(dict.fromkeys((*found.get(new, ()), old)))
    return found


def as_numpy(leaf: Tree) -> Any:
    """A leaf as Flax would read it: an array of NumPy, which is no copy."""
    if not isinstance(leaf, Array):
        return leaf
    return np.frombuffer(leaf.data, leaf.dtype).reshape(leaf.shape)


def _leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, tree


def _put(values: Mapping[Path, Any], like: Any, path: Path = ()) -> Any:
    """The values in a tree like another one."""
    if isinstance(like, Mapping):
        return {key: _put(values, value, (*path, key)) for key, value in like.items()}
    return values[path]


def said(path: Path) -> str:
    """A place, for people."""
    return f"`{'/'.join(path)}`" if path else "the top"
