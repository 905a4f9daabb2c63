"""The format in which `flax.serialization` and `flax.training.checkpoints` write: msgpack, with types of their own for arrays.

Nothing in such a file is run, and nothing of it is believed: shapes have to agree with the bytes that are there. An array stays
the bytes that were read, in one piece or, if Flax cut it up for its size, in several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import msgpack
import numpy as np

from optim2optax.checkpoints import CheckpointError

NDARRAY, COMPLEX, SCALAR = 1, 2, 3
"""The codes of Flax's extension types: an array, a Python complex number, a NumPy scalar."""

CHUNKED, SHAPE, CHUNKS = "__msgpack_chunked_array__", "shape", "chunks"
"""How an array says that it is in pieces: its shape and its pieces are dicts with the keys 0, 1, …"""

DEEPEST = 200
LIMITS = ("max_buffer_size", "max_bin_len", "max_str_len", "max_ext_len", "max_map_len")
MOST_ITEMS = 1_000_000
"""A list may have as many items: room for all of them is made when only their number has been read."""

NOT_ONE = "give a file that `flax.serialization.to_bytes` or `flax.training.checkpoints` wrote"

Tree = Any
"""Dicts with string keys, and leaves: `Array`, numbers, strings, bytes, truth values, None, and lists of these."""


class BadContentError(ValueError):
    """What does not hold together in a file."""


@dataclass(frozen=True, eq=False)
class Array:
    """An array: its shape, its dtype, and its bytes in C order, perhaps in several pieces."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pieces: tuple[memoryview, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def item(self) -> Any:
        """The first element, as a Python number."""
        return np.frombuffer(self.pieces[0], self.dtype, count=1)[0].item()


def read(path: Path) -> Tree:
    """The tree in a file.

    Raises:
      CheckpointError: if it is none of Flax's, is cut off, or contradicts itself.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            limits = dict.fromkeys(LIMITS, size or 1) | {"max_array_len": MOST_ITEMS}
            unpacker = msgpack.Unpacker(
                file, ext_hook=_extension, object_pairs_hook=_dict, strict_map_key=False, **limits
            )
            tree = unpacker.unpack()
            if unpacker.tell() != size:
                raise BadContentError(f"something follows the checkpoint, {size - unpacker.tell()} bytes")
        return _joined(tree, DEEPEST)
    except msgpack.OutOfData:
        raise CheckpointError(
            f"{path} is empty or cut off: copy it once more, or take an earlier checkpoint."
        ) from None
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise CheckpointError(f"{path} is no checkpoint of Flax ({_said(error)}): {NOT_ONE}.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None


def _said(error: Exception) -> str:
    return str(error).strip() or type(error).__name__


def _dict(pairs: Sequence[tuple[object, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str) or key in found:
            raise BadContentError("a key that is no text, or there twice")
        found[key] = value
    return found


def _extension(code: int, data: bytes) -> object:
    if code == COMPLEX:
        match msgpack.unpackb(data):
            case [int() | float() as real, int() | float() as imaginary]:
                return complex(real, imaginary)
        raise BadContentError("a complex number that is none")
    if code not in (NDARRAY, SCALAR):
        raise BadContentError(f"unknown type {code}")
    return _array(data)


def _array(data: bytes) -> Array:
    """An array of Flax: a list of its shape, the name of its dtype, and its bytes, which are not copied."""
    view = memoryview(data)
    unpacker = msgpack.Unpacker(max_buffer_size=len(data) + 1)
    unpacker.feed(view[:HEADER])
    try:
        if unpacker.read_array_header() != 3:
            raise BadContentError("an array without a shape, a dtype and bytes")
        shape, name = unpacker.unpack(), unpacker.unpack()
    except msgpack.OutOfData:
        raise BadContentError("an array that is cut off") from None
    begin = unpacker.tell()
    length = LENGTHS.get(data[begin]) if begin < len(data) else None
    if length is None:
        raise BadContentError("an array without bytes")
    content = view[begin + 1 + length :]
    if int.from_bytes(view[begin + 1 : begin + 1 + length], "big") != len(content):
        raise BadContentError("an array that is cut off")
    return _checked(_shape(shape), _dtype(name), (content,))


HEADER = 1024
"""Within so many bytes are the shape and the dtype of an array."""

LENGTHS: Mapping[int, int] = {0xC4: 1, 0xC5: 2, 0xC6: 4}
"""How many bytes tell the length of bytes, by the code that begins them."""


def _shape(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(size) is int and size >= 0 for size in value):
        raise BadContentError("an array whose shape is none")
    return tuple(value)


def _dtype(name: object) -> np.dtype[Any]:
    if isinstance(name, str) and name in DTYPES:
        return DTYPES[name]
    raise BadContentError(f"an array of unknown type {name!r}")


OF_NUMPY = (np.dtype(code) for code in "?bhilqBHILQefdFD")
OF_JAX = (
    np.dtype(value) for value in vars(ml_dtypes).values() if isinstance(value, type) and issubclass(value, np.generic)
)
DTYPES: Mapping[str, np.dtype[Any]] = {dtype.name: dtype for dtype in (*OF_NUMPY, *OF_JAX)}
"""NumPy's numbers and truth values, and those that JAX has beside them, such as bfloat16, by their names."""


def _checked(shape: tuple[int, ...], dtype: np.dtype[Any], pieces: tuple[memoryview, ...]) -> Array:
    array = Array(shape, dtype, pieces)
    if sum(len(piece) for piece in pieces) != array.nbytes:
        raise BadContentError(f"an array of shape {shape} and type {dtype} that has another number of bytes")
    return array


def _joined(tree: Tree, depth: int) -> Tree:
    """The tree with each array that is in pieces as one."""
    if not depth:
        raise BadContentError("nested too deeply")
    if isinstance(tree, list):
        return [_joined(item, depth - 1) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if CHUNKED in tree:
        return _of_chunks(tree)
    return {key: _joined(value, depth - 1) for key, value in tree.items()}


def _of_chunks(tree: Mapping[str, Any]) -> Array:
    shape, chunks = tree.get(SHAPE), list(_in_order(tree.get(CHUNKS)))
    sizes = shape if isinstance(shape, list) else list(_in_order(shape))
    if not chunks or not all(isinstance(chunk, Array) and chunk.dtype == chunks[0].dtype for chunk in chunks):
        raise BadContentError("an array whose pieces are none, or do not belong together")
    return _checked(_shape(sizes), chunks[0].dtype, tuple(piece for chunk in chunks for piece in chunk.pieces))


def _in_order(tree: object) -> Iterator[Any]:
    if not isinstance(tree, dict) or {*tree} != {str(number) for number in range(len(tree))}:
        raise BadContentError("an array whose pieces are not numbered")
    return (tree[str(number)] for number in range(len(tree)))
