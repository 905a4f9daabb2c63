"""Legacy checkpoints, loaded into the state of a migrated program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from flax import serialization
from flax.training.train_state import TrainState

from optim2optax.checkpoints import CheckpointError, OtherOptimizerError
from optim2optax.checkpoints.carrying import (
    PARTS,
    Carrying,
    copies_of,
    fitted,
    parts_of,
)
from optim2optax.checkpoints.contents import is_legacy, step_of
from optim2optax.checkpoints.correspondence import STEP, nodes_of
from optim2optax.checkpoints.earlier_flax import renewed
from optim2optax.checkpoints.files import newest_at, read
from optim2optax.checkpoints.flax_msgpack import Tree
from optim2optax.checkpoints.missing_transformations import split
from optim2optax.checkpoints.remote import local_copies
from optim2optax.checkpoints.state_dict_places import (
    Path,
    at,
    child_at,
    leaves,
    quoted,
)

State = TypeVar("State")


class Successor(NamedTuple):
    """What goes on from a legacy optimizer.

    Attributes:
      place: its place in the state.
      keys: the key of each of its parts there: of a tuple, `opt_state` is at 1.
      like: its fresh parts.
      tx: their transformation, if it is known.
    """

    place: Path
    keys: Mapping[str, str]
    like: Mapping[str, Any]
    tx: Any


def load_legacy_checkpoint(path: FilePath | str, state: State) -> State:
    """The state of a migrated program, as a legacy checkpoint has it.

    Each train state in `state` goes on from the legacy optimizer that the checkpoint has at the
    same place, or just below it, where a dataclass around an optimizer became a train state itself.
    So do parameters and a state of optax at the place of an optimizer, perhaps with a number of
    steps: as a tuple, or by these names. All else is taken from the same place.

    Args:
      path: a file that the old `flax.serialization` or `flax.training.checkpoints` wrote, a
        checkpoint of Orbax, or a folder with several, of which the one with the highest number is
        taken; or an address of one of these that `fsspec` opens.
      state: a fresh state, as the migrated program makes it: a `TrainState`, or any pytree with
        some in it; or with their parts, perhaps with their transformation ahead of them, which is
        then no part of the result.

    Returns:
      A state of the same structure, with the values of the checkpoint.

    Raises:
      CheckpointError: if the file is no checkpoint, if something in it has no place in `state`, or
        if `state` has a place for which there is nothing in it. Nothing is invented.
    """
    whole, transformations = split(state)
    with local_copies() as copies:
        loaded: State = load(newest_at(copies.copy_of(path)), whole, transformations)
    return loaded


def load(
    path: FilePath,
    state: Any,
    transformations: Mapping[Path, Any],
    *,
    params_only: bool = False,
) -> Any:
    """The same of one file, or of the parameters in it alone.

    The transformations outside of train states are given by their places.
    """
    return _Loading(read(path), state, transformations, params_only).loaded()


class _Loading:
    """Loads a tree into a fresh state.

    The transformations outside of train states are given by their places.
    """

    def __init__(
        self,
        old: Tree,
        state: Any,
        transformations: Mapping[Path, Any],
        params_only: bool,
    ) -> None:
        self.state = state
        self.params_only = params_only
        self.transformations = transformations
        self.optimizers: dict[Path, Mapping[str, Tree]] = {}
        self.others: dict[Path, Tree] = {}
        for place, part in _parts(old):
            (self.optimizers if is_legacy(part) else self.others)[place] = part
        copies = (copies_of(step_of(one)) for one in self.optimizers.values())
        # there are as many of all
        self.copies = next(filter(None, copies), None)
        self.values: dict[Path, Any] = {}
        self.taken: set[Path] = set()

    def loaded(self) -> Any:
        for place, optimizer in self.optimizers.items():
            _refuse_other_steps(place, step_of(optimizer))
        fresh = serialization.to_state_dict(self.state)
        if not isinstance(fresh, Mapping):
            raise CheckpointError(
                f"the new state is of the type {type(fresh).__name__}: it has to be a TrainState, "
                "or a tuple, list, dict or flax.struct.dataclass with some in it."
            )
        for one in successors(self.state, self.transformations, [*self.optimizers]):
            source = self._source(one.place)
            optimizer = self.optimizers.pop(source)
            if source != one.place:
                self._compare_steps((*one.place, "step"), optimizer)
            self.values |= self._carried(one, optimizer)
        new = self._filled(fresh, ())
        # those that are carried over have been taken out
        left = [*self.optimizers]
        left += (path for path in self.others if path not in self.taken)
        if left:
            raise CheckpointError(
                f"{quoted(left[0])} of the checkpoint has no place in the new state."
            )
        _refuse_other_kinds(new, fresh, {*self.values})
        return serialization.from_state_dict(self.state, new)

    def _carried(
        self, successor: Successor, old: Mapping[str, Tree]
    ) -> dict[Path, Any]:
        """The state dicts of what goes on from an optimizer, by their places."""
        place, keys, like, tx = successor
        try:
            if self.params_only:
                found = Carrying(old, like, params_only=True).carried()
            else:
                found = Carrying(renewed(old, like, tx), like, tx).carried()
        except CheckpointError as error:
            kind = CheckpointError
            # a state dict, which is to be mended instead, has a dict in the place of a tuple
            is_state_dict = isinstance(like["opt_state"], dict)
            other = not (self.params_only or is_state_dict)
            if other and _do_params_fit(old, like):
                kind = OtherOptimizerError
            raise kind(
                f"at {quoted(place)}: {error}" if place else str(error)
            ) from None
        return {(*place, keys[name]): value for name, value in found.items()}

    def _source(self, place: Path) -> Path:
        if place in self.optimizers:
            return place
        # {"optimizer": …} of a dataclass that has become a train state itself
        below = [path for path in self.optimizers if path[:-1] == place]
        if len(below) == 1:
            return below[0]
        where = f"at {quoted(place)}, where the new state has a train state."
        if not self.optimizers and not self.values:
            where = "in it: Flax reads what is converted already, or parameters alone, as it is."
        raise CheckpointError(f"the checkpoint has no legacy optimizer {where}")

    def _compare_steps(self, place: Path, optimizer: Mapping[str, Tree]) -> None:
        """Check that a dataclass and its optimizer counted the same: there is one count now."""
        if place not in self.others:
            return
        self.taken.add(place)
        step = self.others[place]
        steps = step_of(optimizer)
        if not np.all(np.asarray(step) == steps):
            raise CheckpointError(
                f"{quoted(place)} of the checkpoint is {step}, and its optimizer's step {steps}: "
                "the new state has one for both."
            )

    def _filled(self, like: Any, path: Path) -> Any:
        """A state dict like another one, with the values that there are.

        What is taken from the checkpoint is noted.
        """
        if path in self.values:
            return self.values[path]
        if isinstance(like, Mapping):
            return {
                key: self._filled(value, (*path, key)) for key, value in like.items()
            }
        if path not in self.others:
            raise CheckpointError(
                f"{quoted(path)} of the new state is not in the checkpoint."
            )
        self.taken.add(path)
        value = self.others[path]
        return value if like is None else fitted(value, like, path, self.copies)


def _do_params_fit(old: Mapping[str, Tree], like: Mapping[str, Any]) -> bool:
    try:
        Carrying(old, like, params_only=True).carried()
    except CheckpointError:
        return False
    return True


def _refuse_other_steps(place: Path, value: Tree) -> None:
    """Steps are counted: by one number, or by one for each copy."""
    if isinstance(value, np.ndarray):
        shown = f"{value.dtype} of shape {value.shape}"
        is_count = value.dtype.kind in "iu" and value.ndim < 2 and value.size > 0
    else:
        shown = type(value).__name__
        # True is an int, too
        is_count = isinstance(value, int) and not isinstance(value, bool)
    if is_count and np.any(np.asarray(value) < 0):
        is_count = False
        shown = "negative"
    if not is_count:
        raise CheckpointError(
            f"{quoted((*place, *STEP))} of the checkpoint is no number of steps, but {shown}."
        )


def _parts(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Tree]]:
    """The legacy optimizers in a tree, and the leaves outside of them, by their places."""
    if isinstance(tree, dict) and not is_legacy(tree):
        for key, value in tree.items():
            yield from _parts(value, (*path, key))
    else:
        yield path, tree


def successors(
    state: Any, transformations: Mapping[Path, Any], places: Iterable[Path]
) -> Iterator[Successor]:
    """The train states in a state, and what stands instead of them at some other places."""
    train_states = nodes_of(state, lambda node: isinstance(node, TrainState))
    for place, one in train_states.items():
        names = dict(zip(PARTS, PARTS, strict=True))
        yield Successor(place, names, parts_of(one), one.tx)
    for place in places:
        keys = {} if place in train_states else _keys_of_parts(state, place)
        if keys:
            like = {name: child_at(state, (*place, key)) for name, key in keys.items()}
            yield Successor(place, keys, like, transformations.get(place))


def _keys_of_parts(state: Any, place: Path) -> dict[str, str]:
    """The keys of parameters, of a state of optax and of the number of steps at one place.

    None, if there is anything else.
    """
    node = at(serialization.to_state_dict(state), place)
    keys = {*node} if isinstance(node, Mapping) else set()
    # (params, opt_state, step) has the keys 0, 1 and 2
    for names in (PARTS, ("0", "1", "2")):
        if {*names[:2]} <= keys <= {*names}:
            return {
                part: name
                for part, name in zip(PARTS, names, strict=True)
                if name in keys
            }
    return {}


KINDS = {
    "bool": jnp.bool_,
    "int": jnp.integer,
    "float": jnp.floating,
    "complex": jnp.complexfloating,
}


def _refuse_other_kinds(
    new: Mapping[str, Any] | Any, fresh: Any, carried: Collection[Path]
) -> None:
    """Refuse a state dict in which a leaf is of another kind than in the fresh one.

    Args:
      new: the state dict with the values of a checkpoint.
      fresh: the state dict as the program makes it.
      carried: the places that are carried over from legacy optimizers, where each array must have
        the same kind of numbers as in the program.

    Raises:
      CheckpointError: if there is such a leaf.
    """
    for path, value in leaves(new):
        like = at(fresh, path)
        if like is None:
            continue
        is_carried = any(path[: len(place)] == place for place in carried)
        kind = _kind(value, is_carried)
        wanted = _kind(like, is_carried)
        if kind != wanted:
            raise CheckpointError(
                f"{quoted(path)} is {kind} in the checkpoint, and {wanted} in the new state."
            )


def _kind(leaf: Any, is_carried: bool) -> str:
    """The kind of a leaf, in words. Beside optimizers, all numbers are of one kind."""
    name = type(leaf).__name__
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None:
        kinds = (one for one, kind in KINDS.items() if jnp.issubdtype(dtype, kind))
        name = next(kinds, name)
    is_number = name in KINDS and not is_carried
    return "a number" if is_number else f"of type {name}"
