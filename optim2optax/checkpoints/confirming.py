"""What was carried over, looked at from the other side: the legacy state is made again from the new one, and compared.

It needs to know nothing of how a leaf was carried: each leaf of the checkpoint has to be in the new state, bit by bit, below the
field that keeps the same of the same parameter, and the new state has nothing else.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from codemods.optimizers import optimizers
from flax import serialization

from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.carrying import copies_of
from optim2optax.checkpoints.correspondence import COUNT, STEP
from optim2optax.checkpoints.flax_msgpack import Tree, as_numpy
from optim2optax.checkpoints.places import Path, key_of, leaves, said

Mark = tuple[object, ...]
"""The shape, type and checksum of an array, or another value itself."""

AT_ONCE = 2**20
"""So many elements are negated at once."""

NOTHING: Mark = ("nothing",)
"""That a leaf may be gone: the zero that Adafactor has for an average that it does not keep."""

PARTS = {"direction_state": "direction", "scale_state": "scale"}
"""What `WeightNorm` has for the optimizer of the two parts of a parameter, and what these are called."""


def marks_of(optimizer: Mapping[str, Tree]) -> dict[Path, tuple[Mark, ...]]:
    """What has to be found again of the leaves of a legacy optimizer: each, or the first if it is so many copies."""
    copies = copies_of(optimizer["state"]["step"])
    return {
        path: tuple(_marks(path, as_numpy(leaf), copies))
        for path, leaf in leaves(optimizer)
        if leaf is not None
    }


def _marks(path: Path, value: Any, copies: int | None) -> Iterator[Mark]:
    yield _mark(value)
    if copies is not None and np.shape(value)[:1] == (copies,):
        yield _mark(value[0])
    if path[-1] == "m" and np.shape(value)[-1:] == (1,) and not np.any(value):
        yield NOTHING


def confirm(
    marks: Mapping[Path, tuple[Mark, ...]], new: Mapping[str, Any], keeps_state: bool
) -> None:
    """Compare a new state with what has to be found in it.

    Args:
      marks: of the leaves of a legacy optimizer, as they were in the checkpoint.
      new: the parameters, the state and perhaps the step that go on from it.
      keeps_state: whether the state is as it was, that of a definition that keeps its interface.

    Raises:
      CheckpointError: if a leaf is not found, or one is found that was none.
    """
    params = dict(leaves(serialization.to_state_dict(new["params"]), ("target",)))
    state = dict(leaves(serialization.to_state_dict(new["opt_state"]), ("state",)))
    if keeps_state:
        found = {path: [leaf] for path, leaf in {**params, **state}.items() if leaf is not None}
        unknown = found.keys() - marks.keys()
    else:
        found, unknown = _found(marks, params, new["opt_state"])
        found[STEP] += [new[name] for name in ("step",) if name in new]
    for path, expected in marks.items():
        wanted = found.get(path, [])
        is_missing = (
            not wanted and path != STEP and NOTHING not in expected
        )  # a program need not count its steps
        if is_missing or not all(_is_one_of(expected, leaf, path) for leaf in wanted):
            raise CheckpointError(
                f"{said(path)} is not found again in the new state: this is a defect of optim2optax."
            )
    if unknown:
        raise CheckpointError(
            f"{said(min(unknown))} of the new state was not in the checkpoint: this is a defect of optim2optax."
        )


def _found(
    marks: Mapping[Path, Any], params: Mapping[Path, Any], opt_state: Any
) -> tuple[dict[Path, list[Any]], set[Path]]:
    """What a state of optax has of each leaf of a legacy one, and the places of what it has beside that."""
    found: dict[Path, list[Any]] = defaultdict(
        list, {path: [leaf] for path, leaf in params.items()}
    )
    sources = {tail: path for path in marks for tail in _tails(path)}
    unknown = set()
    for keys, leaf in jax.tree_util.tree_flatten_with_path(opt_state)[0]:
        names = tuple(map(key_of, keys))
        fields = [
            number for number, key in enumerate(keys) if isinstance(key, jax.tree_util.GetAttrKey)
        ]
        source = next(
            (sources[names[number:]] for number in fields if names[number:] in sources), None
        )
        if source is not None:
            found[source].append(leaf)
        elif fields[-1:] == [len(keys) - 1] and names[-1] == COUNT:
            found[STEP].append(leaf)
        elif not any(names[number] == "hyperparams" for number in fields):
            unknown.add(("opt_state", *names))
    return found, unknown


def _tails(path: Path) -> Iterator[Path]:
    """The ends of the places at which a state of optax may have what a legacy one had at a path: a field, and a parameter."""
    if path[:2] != ("state", "param_states"):
        return
    *rest, old = path[2:]
    part = [PARTS[word] for word in rest[-1:] if word in PARTS]
    for optimizer in optimizers().values():
        if old in optimizer.state:
            yield (optimizer.state[old], *rest)
            yield (optimizer.state[old], *part, *rest[: len(rest) - len(part)])


def _is_one_of(expected: tuple[Mark, ...], leaf: Any, path: Path) -> bool:
    """Whether this is what has to be found; a trace may have the opposite sign."""
    return _mark(leaf) in expected or (
        path[-1] == "momentum" and _mark(leaf, negated=True) in expected
    )


def _mark(value: Any, negated: bool = False) -> Mark:
    if not isinstance(value, np.ndarray | np.generic):
        return type(value).__name__, value
    flat, checksum = np.ravel(value), 0
    for start in range(0, flat.size, AT_ONCE):
        part = np.ascontiguousarray(flat[start : start + AT_ONCE])
        checksum = zlib.crc32(
            (np.negative(part) if negated else part).view(np.uint8).data, checksum
        )
    return value.shape, value.dtype.name, checksum
