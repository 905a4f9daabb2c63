"""Legacy checkpoints, loaded into the state of a migrated program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, TypeVar

import jax
from flax import serialization
from flax.training.train_state import TrainState

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.carrying import as_numpy, carried, carried_parts
from optim2optax.checkpoints.contents import is_legacy
from optim2optax.checkpoints.files import newest_at, read
from optim2optax.checkpoints.flax_msgpack import Tree
from optim2optax.checkpoints.places import Path, said

State = TypeVar("State")


def load_legacy_checkpoint(path: FilePath | str, state: State) -> State:
    """The state of a migrated program, as a legacy checkpoint has it.

    Each train state in `state` goes on from the legacy optimizer that the checkpoint has at the same place, or just below it,
    where a dataclass around an optimizer became a train state itself. So do parameters and a state of optax at the place of an
    optimizer, perhaps with a number of steps: as a tuple, or by these names. All else is taken from the same place.

    Args:
      path: a file that the old `flax.serialization` or `flax.training.checkpoints` wrote, a checkpoint of Orbax, or a folder
        with several, of which the one with the highest number is taken.
      state: a fresh state, as the migrated program makes it: a `TrainState`, or any pytree with some in it; or with their parts.

    Returns:
      A state of the same structure, with the values of the checkpoint.

    Raises:
      CheckpointError: if the file is no checkpoint, if something in it has no place in `state`, or if `state` has a place for
        which there is nothing in it. Nothing is invented.
    """
    old = read(newest_at(FilePath(path)))
    optimizers, others = dict(_optimizers(old)), dict(_others(old))
    taken: set[Path] = set()
    values: dict[Path, Any] = {}
    for place, train_state in _train_states(state):
        source = _source(place, optimizers)
        for name, value in carried(optimizers.pop(source), train_state).items():
            values[(*place, name)] = value
        if source != place:  # a dataclass around it may have counted its steps once more
            taken.add((*place, "step"))
    fresh = serialization.to_state_dict(state)
    for place in [*optimizers]:
        parts = _parts(_at(fresh, place))
        if parts:
            like = {name: _at(fresh, (*place, key)) for name, key in parts.items()}
            for name, value in carried_parts(optimizers.pop(place), like).items():
                values[(*place, parts[name])] = value
    new = _filled(fresh, (), values, others, taken)
    left = [*optimizers, *(path for path in others if path not in taken)]
    if left:
        raise CheckpointError(f"{said(left[0])} of the checkpoint has no place in the new state.")
    loaded: State = serialization.from_state_dict(state, new)
    return loaded


def _optimizers(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Mapping[str, Tree]]]:
    if is_legacy(tree):
        yield path, tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from _optimizers(value, (*path, key))


def _others(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Tree]]:
    """The leaves outside of legacy optimizers."""
    if isinstance(tree, dict) and not is_legacy(tree):
        for key, value in tree.items():
            yield from _others(value, (*path, key))
    elif not is_legacy(tree):
        yield path, tree


def _train_states(state: Any) -> Iterator[tuple[Path, TrainState]]:
    found, _ = jax.tree_util.tree_flatten_with_path(state, is_leaf=lambda node: isinstance(node, TrainState))
    for keys, leaf in found:
        if isinstance(leaf, TrainState):
            yield tuple(_key(key) for key in keys), leaf


PARTS = ("params", "opt_state", "step")
"""What a program has instead of a train state, in this order if it is a tuple. It need not count the steps."""


def _parts(node: Any) -> dict[str, str]:
    """The keys of parameters, of a state of optax and of the number of steps at one place; none if these are not all there is."""
    keys = {*node} if isinstance(node, Mapping) else set()
    for names in (PARTS, ("0", "1", "2")):
        if {*names[:2]} <= keys <= {*names}:
            return {part: name for part, name in zip(PARTS, names, strict=True) if name in keys}
    return {}


def _at(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def _key(key: Any) -> str:
    """What a state dict calls a child."""
    return str(next(getattr(key, name) for name in ("name", "key", "idx") if hasattr(key, name)))


def _source(place: Path, optimizers: Mapping[Path, Any]) -> Path:
    if place in optimizers:
        return place
    below = [path for path in optimizers if path[:-1] == place]
    if len(below) == 1:
        return below[0]
    raise CheckpointError(
        f"the checkpoint has no legacy optimizer at {said(place)}, where the new state has a train state."
    )


def _filled(like: Any, path: Path, values: Mapping[Path, Any], others: Mapping[Path, Tree], taken: set[Path]) -> Any:
    """A state dict like another one, with the values that there are; what is taken from the checkpoint is noted."""
    if path in values:
        return values[path]
    if isinstance(like, Mapping):
        return {key: _filled(value, (*path, key), values, others, taken) for key, value in like.items()}
    if path not in others:
        raise CheckpointError(f"{said(path)} of the new state is not in the checkpoint.")
    taken.add(path)
    return as_numpy(others[path])
