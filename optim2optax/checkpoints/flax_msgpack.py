"""The format of `flax.serialization` and `flax.training.checkpoints`.

It is msgpack with types of its own for arrays. Nothing in such a file is run, and nothing of it is
believed: shapes have to agree with the bytes that are there. The file is read piece by piece, so
that there is one copy of it in memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import msgpack
import numpy as np

from optim2optax.checkpoints import CheckpointError, to_be_read

NDARRAY, COMPLEX, SCALAR = 1, 2, 3
"""The codes of Flax's extension types: an array, a Python complex number, a NumPy scalar."""

CHUNKED, SHAPE, CHUNKS = "__msgpack_chunked_array__", "shape", "chunks"
"""The keys of an array in pieces: its shape and its pieces are dicts with the keys 0, 1, …"""

NAMED_TUPLE = {"name", "fields", "values"}
"""How Flax up to 0.3.4 stored a named tuple: its name, and two dicts with the keys 0, 1, …"""

MOST_VALUES = 1_000_000
"""More elements of a dict or list than any model has."""

MOST_DIMENSIONS = 32
MOST_ELEMENTS = 2**58
"""More elements than an array of any NumPy has. An empty dimension counts as one element."""

LARGEST = 2**32 - 1
"""The most bytes of a value in msgpack."""

NOT_ONE = "give a file that `flax.serialization.to_bytes` or `flax.training.checkpoints` wrote"

Array = np.ndarray[Any, Any]
Tree = Any
"""Dicts with string keys, and leaves: arrays, numbers, strings, bytes, bool, None, and lists."""


class BadContentError(ValueError):
    """The content of a file contradicts itself or the format."""


def read(path: Path) -> Tree:
    """The tree in a file. A named tuple of an old Flax is a dict of its fields, as today.

    Raises:
      CheckpointError: if the file is not a checkpoint of Flax, is cut off, or contradicts itself.
    """
    try:
        with to_be_read(path), path.open("rb") as file:
            _refuse_more_than_memory(path.stat().st_size)
            unpacker = msgpack.Unpacker(
                file,
                ext_hook=_extension,
                object_pairs_hook=_dict,
                max_buffer_size=2 * LARGEST,
                max_str_len=LARGEST,
                max_bin_len=LARGEST,
                max_ext_len=LARGEST,
                max_array_len=MOST_VALUES,
                max_map_len=MOST_VALUES,
            )
            tree = unpacker.unpack()
            left = path.stat().st_size - unpacker.tell()
        if left:
            raise BadContentError(f"something follows the checkpoint, {left} bytes")
    except msgpack.OutOfData:
        raise CheckpointError(
            f"{path} is empty or cut off: copy it once more, or take an earlier checkpoint."
        ) from None
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        why = str(error) or type(error).__name__
        raise CheckpointError(
            f"{path} is no checkpoint of Flax ({why}): {NOT_ONE}."
        ) from None
    except MemoryError:
        raise CheckpointError(
            f"{path} takes more memory than there is: {path.stat().st_size:,} bytes."
        ) from None
    return tree


def _refuse_more_than_memory(size: int) -> None:
    """Some systems promise more memory than they have, and kill the process that uses it."""
    if "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if size > memory:
            raise MemoryError


def _dict(pairs: list[tuple[Any, Any]]) -> Tree:
    """A dict, or the array or named tuple that it stands for."""
    found = dict(pairs)
    if len(found) < len(pairs) or not all(isinstance(key, str) for key in found):
        raise BadContentError("a key that is no text, or there twice")
    if CHUNKED in found:
        return _joined(found)
    return _named_tuple(found) if {*found} == NAMED_TUPLE else found


def _extension(code: int, content: bytes) -> Array | complex:
    try:
        value = msgpack.unpackb(content)
    except (ValueError, msgpack.UnpackException) as error:
        raise BadContentError(f"an array that is none: {error}") from None
    match code, value:
        case (_, [int() | float() as real, int() | float() as imaginary]) if (
            code == COMPLEX
        ):
            return complex(real, imaginary)
        # a list of its shape, the name of its dtype, and its bytes
        case (_, [shape, name, bytes() as data]) if code in (NDARRAY, SCALAR):
            return _shaped(np.frombuffer(data, np.uint8), _dtype(name), _shape(shape))
    raise BadContentError(f"a value of type {code} that is none")


def _joined(tree: Mapping[str, Any]) -> Array:
    """An array in pieces as one."""
    shape = tree.get(SHAPE)
    pieces = list(_in_order(tree.get(CHUNKS)))
    sizes = shape if isinstance(shape, list) else list(_in_order(shape))
    are_arrays = all(isinstance(piece, np.ndarray) for piece in pieces)
    if not pieces or not are_arrays or len({piece.dtype for piece in pieces}) > 1:
        raise BadContentError(
            "an array whose pieces are none, or do not belong together"
        )
    flat = np.concatenate([piece.reshape(-1) for piece in pieces])
    return _shaped(flat.view(np.uint8), flat.dtype, _shape(sizes))


def _shape(value: object) -> tuple[int, ...]:
    # True is an int, too
    if not isinstance(value, list) or any(
        type(size) is not int or size < 0 for size in value
    ):
        raise BadContentError("an array whose shape is none")
    if len(value) > MOST_DIMENSIONS:
        raise BadContentError(f"an array of {len(value)} dimensions")
    elements = math.prod(size or 1 for size in value)
    if elements >= MOST_ELEMENTS:
        raise BadContentError("an array whose shape is none")
    return tuple(value)


def _dtype(name: object) -> np.dtype[Any]:
    if isinstance(name, str) and (name in DTYPES or name in CODES):
        return DTYPES.get(name) or CODES[name]
    raise BadContentError(f"an array of unknown type {name!r}")


OF_NUMPY = [np.dtype(code) for code in "?bhilqBHILQefdFD"]
OF_JAX = [
    np.dtype(value)
    for value in vars(ml_dtypes).values()
    if isinstance(value, type) and issubclass(value, np.generic)
]
DTYPES: Mapping[str, np.dtype[Any]] = {
    dtype.name: dtype for dtype in (*OF_NUMPY, *OF_JAX)
}
"""NumPy's types of numbers and bool, and those that JAX adds, such as bfloat16, by their names."""

CODES = {dtype.str: dtype for dtype in DTYPES.values() if dtype.kind != "V"} | {
    "<V2": DTYPES["bfloat16"]
}
"""The names in Flax up to 0.2. JAX had only bfloat16 then, whose name told only its size."""


def _shaped(data: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The array of some bytes, which is no copy."""
    if data.size != math.prod(shape) * dtype.itemsize:
        raise BadContentError(
            f"an array of shape {shape} and type {dtype} that has another number of bytes"
        )
    return data.view(dtype).reshape(shape)


def _named_tuple(tree: Mapping[str, Any]) -> Tree:
    """The fields of a named tuple of an old Flax; any other dict with the same keys as it is."""
    match tree:
        # {"name": "State", "fields": {"0": "count"}, "values": {"0": 3}}
        case {"name": str(), "fields": {**fields}, "values": {**values}}:
            if {*fields} == {*values} and _are_names([*fields.values()]):
                return {fields[key]: values[key] for key in fields}
    return tree


def _are_names(values: list[Any]) -> bool:
    """Whether these are texts, each of them once."""
    if not all(isinstance(value, str) for value in values):
        return False
    return len({*values}) == len(values)


def _in_order(tree: object) -> Iterator[Any]:
    """The values of a dict with the keys 0, 1, …, in their order."""
    if not isinstance(tree, dict):
        raise BadContentError("an array whose pieces are not numbered")
    keys = [str(number) for number in range(len(tree))]
    if {*tree} != {*keys}:
        raise BadContentError("an array whose pieces are not numbered")
    return (tree[key] for key in keys)
