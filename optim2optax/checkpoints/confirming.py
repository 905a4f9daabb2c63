"""A check of the conversion from its result: the new state is compared with the checkpoint.

It does not depend on how a leaf was carried over: each leaf of the checkpoint has to be in the new
state, bit by bit, below the field that keeps the same for the same parameter, and the new state has
nothing else.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from flax import serialization

from codemods.optimizers import optimizers
from optim2optax.checkpoints import CheckpointError
from optim2optax.checkpoints.carrying import copies_of
from optim2optax.checkpoints.correspondence import COUNT, HYPERPARAMS, STEP
from optim2optax.checkpoints.flax_msgpack import Tree, as_numpy
from optim2optax.checkpoints.state_dict_places import Path, key_of, leaves, said

Mark = tuple[object, ...]
"""The shape, type and checksum of an array, or another value itself."""

AT_ONCE = 2**20
"""The number of elements that are negated at once, so that no whole array is copied."""

NOTHING: Mark = ("nothing",)
"""Marks a leaf that may be absent: the zero that Adafactor has for an average that it lacks."""

PARTS = {"direction_state": "direction", "scale_state": "scale"}
"""The fields of `WeightNorm` with the state of an inner optimizer, and the part that it steps."""


def marks_of(optimizer: Mapping[str, Tree]) -> dict[Path, tuple[Mark, ...]]:
    """The marks by which each leaf of a legacy optimizer is found again in the new state.

    Of copies, it is enough to find the first.
    """
    copies = copies_of(optimizer["state"]["step"])
    found: dict[Path, tuple[Mark, ...]] = {}
    for path, leaf in leaves(optimizer):
        if leaf is not None:
            found[path] = tuple(_marks(path, as_numpy(leaf), copies))
    return found


def _marks(path: Path, value: Any, copies: int | None) -> Iterator[Mark]:
    yield _mark(value)
    shape = np.shape(value)
    if copies is not None and shape[:1] == (copies,):
        yield _mark(value[0])
    # Adafactor(beta1=None) has a zero for the average that it does not keep
    if path[-1] == "m" and shape[-1:] == (1,) and not np.any(value):
        yield NOTHING


def confirm(
    marks: Mapping[Path, tuple[Mark, ...]], new: Mapping[str, Any], keeps_state: bool
) -> None:
    """Compare a new state with the leaves of the checkpoint.

    Args:
      marks: of the leaves of a legacy optimizer, as they were in the checkpoint.
      new: the parameters, the state and perhaps the step that go on from it.
      keeps_state: whether the state is as it was, that of a definition that keeps its interface.

    Raises:
      CheckpointError: if a leaf is not found, or one is found that was not in the checkpoint.
    """
    params = dict(leaves(serialization.to_state_dict(new["params"]), ("target",)))
    state = dict(leaves(serialization.to_state_dict(new["opt_state"]), ("state",)))
    if keeps_state:
        # None is no leaf here, as it is none in the marks
        kept = {**params, **state}
        found = {path: [leaf] for path, leaf in kept.items() if leaf is not None}
        unknown = found.keys() - marks.keys()
    else:
        found, unknown = _found(marks, params, new["opt_state"])
        if "step" in new:
            found[STEP].append(new["step"])
    for path, expected in marks.items():
        if not _is_confirmed(path, expected, found.get(path, [])):
            raise CheckpointError(
                f"{said(path)} is not found again in the new state: "
                "this is a defect of optim2optax."
            )
    if unknown:
        raise CheckpointError(
            f"{said(min(unknown))} of the new state was not in the checkpoint: "
            "this is a defect of optim2optax."
        )


def _is_confirmed(path: Path, expected: tuple[Mark, ...], found: Sequence[Any]) -> bool:
    """Whether what was found of a leaf is what it was. A program need not count its steps."""
    if not found:
        return path == STEP or NOTHING in expected
    return all(_is_one_of(expected, leaf, path) for leaf in found)


def _found(
    marks: Mapping[Path, Any], params: Mapping[Path, Any], opt_state: Any
) -> tuple[dict[Path, list[Any]], set[Path]]:
    """The leaves of a state of optax for each leaf of a legacy one, and the places of the rest."""
    found: dict[Path, list[Any]] = defaultdict(list)
    for path, leaf in params.items():
        found[path].append(leaf)
    sources = {tail: path for path in marks for tail in _tails(path)}
    unknown: set[Path] = set()
    paths_and_leaves, _ = jax.tree_util.tree_flatten_with_path(opt_state)
    for keys, leaf in paths_and_leaves:
        names = tuple(map(key_of, keys))
        fields = [number for number, key in enumerate(keys) if _is_field(key)]
        source = _source_of(names, fields, sources)
        if source is not None:
            found[source].append(leaf)
            continue
        ends_in_field = fields[-1:] == [len(keys) - 1]
        if ends_in_field and names[-1] == COUNT:
            # ScaleByAdamState(count=…)
            found[STEP].append(leaf)
        elif not any(names[number] == HYPERPARAMS for number in fields):
            # InjectHyperparamsState(hyperparams={"learning_rate": …}) is the program's own
            unknown.add(("opt_state", *names))
    return found, unknown


def _is_field(key: Any) -> bool:
    """Whether a key of a path is the name of a field, as of `ScaleByAdamState`."""
    return isinstance(key, jax.tree_util.GetAttrKey)


def _source_of(
    names: Path, fields: Sequence[int], sources: Mapping[Path, Path]
) -> Path | None:
    """The place in the legacy state of a leaf of optax, by the fields on the way to it."""
    for number in fields:
        # 0/trace/dense/kernel has the field `trace`, and is looked up as trace/dense/kernel
        tail = names[number:]
        if tail in sources:
            return sources[tail]
    return None


def _tails(path: Path) -> Iterator[Path]:
    """The ends of the places in a state of optax for a path of the legacy state.

    Each is a field and the path of a parameter.
    """
    if path[:2] != ("state", "param_states"):
        return
    # state/param_states/dense/kernel/momentum
    *rest, old = path[2:]
    part = [PARTS[word] for word in rest[-1:] if word in PARTS]
    for optimizer in optimizers().values():
        if old in optimizer.state:
            field = optimizer.state[old]
            yield (field, *rest)
            # dense/kernel/direction_state/momentum is trace/direction/dense/kernel
            param = rest[: len(rest) - len(part)]
            yield (field, *part, *param)


def _is_one_of(expected: tuple[Mark, ...], leaf: Any, path: Path) -> bool:
    """Whether a leaf has one of the expected marks; a trace may have the opposite sign."""
    if _mark(leaf) in expected:
        return True
    # the trace of LARS is behind the learning rate: it accumulates updates, not gradients
    return path[-1] == "momentum" and _mark(leaf, negated=True) in expected


def _mark(value: Any, negated: bool = False) -> Mark:
    if not isinstance(value, np.ndarray | np.generic):
        # 1, 1.0 and True are equal, and not the same
        return type(value).__name__, value
    flat = np.ravel(value)
    checksum = 0
    for start in range(0, flat.size, AT_ONCE):
        part = np.ascontiguousarray(flat[start : start + AT_ONCE])
        if negated:
            part = np.negative(part)
        checksum = zlib.crc32(part.view(np.uint8).data, checksum)
    return value.shape, value.dtype.name, checksum
