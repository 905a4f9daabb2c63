"""The format of `flax.serialization` and `flax.training.checkpoints`.

It is msgpack with types of its own for arrays. Nothing in such a file is run, and nothing of it is
believed: shapes have to agree with the bytes that are there. The file is read once, into one
buffer, and every array stays a part of that; the package `msgpack` would copy each.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from optim2optax.checkpoints import CheckpointError, to_be_read

NDARRAY, COMPLEX, SCALAR = 1, 2, 3
"""The codes of Flax's extension types: an array, a Python complex number, a NumPy scalar."""

CHUNKED, SHAPE, CHUNKS = "__msgpack_chunked_array__", "shape", "chunks"
"""The keys of an array in pieces: its shape and its pieces are dicts with the keys 0, 1, …"""

NAMED_TUPLE = {"name", "fields", "values"}
"""How Flax up to 0.3.4 stored a named tuple: its name, and two dicts with the keys 0, 1, …"""

DEEPEST = 200
MOST_VALUES = 1_000_000
"""More elements of dicts, lists and shapes than any model has."""

MOST_DIMENSIONS = 32
MOST_ELEMENTS = 2**58
"""More elements than an array of any NumPy has. An empty dimension counts as one element."""

LARGEST_GAP = 7
"""An array may move by so many bytes: its header in the file is longer."""

NOT_ONE = "give a file that `flax.serialization.to_bytes` or `flax.training.checkpoints` wrote"
BEGINNING = re.compile(
    rb"\x80\Z|([\x81-\x8f]|\xde..|\xdf....)[\xa0-\xbf\xd9-\xdb]", re.DOTALL
)
"""An empty dict, or a dict and a string, its first key."""

Array = np.ndarray[Any, Any]
Tree = Any
"""Dicts with string keys, and leaves: arrays, numbers, strings, bytes, bool, None, and lists."""


class BadContentError(ValueError):
    """The content of a file contradicts itself or the format."""


class CutOffError(ValueError):
    """The file ends in the middle of a value."""


def read(path: Path) -> Tree:
    """The tree in a file. A named tuple of an old Flax is a dict of its fields, as today.

    Raises:
      CheckpointError: if the file is not a checkpoint of Flax, is cut off, or contradicts itself.
    """
    try:
        with to_be_read(path), path.open("rb") as file:
            content = _room_for(path.stat().st_size)
            reader = _Reader(memoryview(content)[: file.readinto(content)])
        tree = reader.value(DEEPEST)
        if reader.left and content[:1] == b"\x80":  # an empty dict, or a pickle
            raise CheckpointError(
                f"{path} is a pickle, which is not loaded: load it in the old program, and write "
                "`flax.serialization.to_bytes` of it."
            )
        if reader.left:
            is_text = content.isascii() and b"\0" not in content
            what = f"something follows the checkpoint, {reader.left} bytes"
            raise BadContentError("a text" if is_text else what)
    except CutOffError:
        raise CheckpointError(
            f"{path} is empty or cut off: copy it once more, or take an earlier checkpoint."
        ) from None
    except ValueError as error:
        raise CheckpointError(
            f"{path} is no checkpoint of Flax ({error}): {NOT_ONE}."
        ) from None
    except MemoryError:
        raise CheckpointError(
            f"{path} takes more memory than there is: {path.stat().st_size:,} bytes."
        ) from None
    return tree


def begins(path: Path) -> bool:
    """Whether this is a file that begins as a checkpoint does.

    Raises:
      CheckpointError: if it cannot be read.
    """
    if not path.is_file():
        return False
    with to_be_read(path), path.open("rb") as file:
        return BEGINNING.match(file.read(6)) is not None


def _room_for(size: int) -> bytearray:
    """A buffer of a size.

    Some systems promise more memory than they have, and kill the process that uses it, so that
    the size is compared with the memory of the machine first.
    """
    if "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if size > memory:
            raise MemoryError
    return bytearray(size)


class _Reader:
    """Reads msgpack from a buffer, one value after the other.

    The format: https://github.com/msgpack/msgpack/blob/master/spec.md
    """

    def __init__(self, content: memoryview) -> None:
        self.content = content
        self.address = _address(np.frombuffer(content, np.uint8))
        self.position = 0
        self.end = len(content)
        self.values = 0

    @property
    def left(self) -> int:
        """The number of bytes that are not read yet."""
        return self.end - self.position

    def value(self, depth: int) -> Tree:
        """The next value.

        Raises:
          CutOffError: if the buffer ends within the value.
          BadContentError: if Flax does not write such a value.
        """
        if not depth:
            raise BadContentError("nested too deeply")
        kind, size = self._head()
        if kind == "value":
            return size
        if kind == "extension":
            return self._extension(size)
        if kind == "text":
            return str(self._bytes(size), "utf-8")
        if kind == "bytes":
            return bytes(self._bytes(size))
        return self._container(kind, size, depth)

    def _head(self) -> tuple[str, Any]:
        """The kind of the next value and its size; of a number or a constant, the value itself."""
        code = self._number("B")
        if code not in HEADS:
            raise BadContentError(f"the code {code:#x}, which msgpack has not")
        kind, size = HEADS[code]
        return kind, self._number(size) if isinstance(size, str) else size

    def _container(self, kind: str, size: int, depth: int) -> Tree:
        self.values += size
        if size > self.left:  # each value has a byte at least
            raise CutOffError
        if self.values > MOST_VALUES:
            raise BadContentError("more than a model has")
        if kind == "list":
            return [self.value(depth - 1) for _ in range(size)]
        return self._map(size, depth - 1)

    def _number(self, code: str) -> Any:
        packed = STRUCTS[code]
        [number] = packed.unpack(self._bytes(packed.size))
        return number

    def _bytes(self, size: int) -> memoryview:
        if size > self.left:
            raise CutOffError
        self.position += size
        return self.content[self.position - size : self.position]

    def _map(self, size: int, depth: int) -> Tree:
        found: dict[str, Any] = {}
        for _ in range(size):
            key = self.value(depth)
            if not isinstance(key, str) or key in found:
                raise BadContentError("a key that is no text, or there twice")
            found[key] = self.value(depth)
        if CHUNKED in found:
            return self._joined(found)
        return _named_tuple(found) if {*found} == NAMED_TUPLE else found

    def _extension(self, size: int) -> Array | complex:
        code = self._number("B")
        if size > self.left:
            raise CutOffError
        # what is in it must not go beyond it
        whole, self.end = self.end, self.position + size
        try:
            if code not in (NDARRAY, SCALAR, COMPLEX):
                raise BadContentError(f"unknown type {code}")
            value = self._complex() if code == COMPLEX else self._array()
            if self.left:
                raise BadContentError("an array that something follows")
        except CutOffError:
            raise BadContentError("an array that is cut off") from None
        self.end = whole
        return value

    def _complex(self) -> complex:
        match self.value(2):
            case [int() | float() as real, int() | float() as imaginary]:
                return complex(real, imaginary)
        raise BadContentError("a complex number that is none")

    def _array(self) -> Array:
        """An array of Flax: a list of its shape, the name of its dtype, and its bytes.

        The bytes are not copied, but may move in the buffer, over their header: Orbax would copy an
        array that is not aligned.
        """
        if self._head() != ("list", 3):
            raise BadContentError("an array without a shape, a dtype and bytes")
        shape = _shape(self.value(2))
        dtype = _dtype(self.value(1))
        kind, size = self._head()
        if kind != "bytes":
            raise BadContentError("an array without bytes")
        data = self._bytes(size)
        begin = self.position - size
        gap = begin % min(dtype.alignment, LARGEST_GAP + 1)
        if gap:
            begin -= gap
            self.content[begin : begin + size] = data
        return _shaped(self.content[begin : begin + size], dtype, shape)

    def _joined(self, tree: Mapping[str, Any]) -> Array:
        """An array in pieces as one: they move together in the buffer, over their headers."""
        shape = tree.get(SHAPE)
        pieces = _in_order(tree.get(CHUNKS))
        sizes = shape if isinstance(shape, list) else _in_order(shape)
        are_arrays = all(isinstance(piece, np.ndarray) for piece in pieces)
        if not are_arrays or len({piece.dtype for piece in pieces}) != 1:
            raise BadContentError(
                "an array whose pieces are none, or do not belong together"
            )
        begin = end = _address(pieces[0]) - self.address
        for piece in pieces:
            start = _address(piece) - self.address
            if start < end:
                raise BadContentError(
                    "an array whose pieces are in another order than their numbers"
                )
            part = self.content[start : start + piece.nbytes]
            self.content[end : end + piece.nbytes] = part
            end += piece.nbytes
        return _shaped(self.content[begin:end], pieces[0].dtype, _shape(sizes))


STRUCTS = {code: struct.Struct(f">{code}") for code in "fdBHIQbhiq"}

HEADS: dict[int, tuple[str, Any]] = {
    **{code: ("value", code) for code in range(0x80)},
    **{0x80 + size: ("map", size) for size in range(0x10)},
    **{0x90 + size: ("list", size) for size in range(0x10)},
    **{0xA0 + size: ("text", size) for size in range(0x20)},
    **{0xD4 + power: ("extension", 2**power) for power in range(5)},
    **{code: ("value", code - 0x100) for code in range(0xE0, 0x100)},
    0xC0: ("value", None),
    0xC2: ("value", False),
    0xC3: ("value", True),
}
"""By code, the kind of a value and its size, or the code of `struct` of the size that follows."""

for _begin, _kind, _sizes in (
    (0xC4, "bytes", "BHI"),
    (0xC7, "extension", "BHI"),
    (0xCA, "value", "fdBHIQbhiq"),
    (0xD9, "text", "BHI"),
    (0xDC, "list", "HI"),
    (0xDE, "map", "HI"),
):
    HEADS.update((_begin + index, (_kind, size)) for index, size in enumerate(_sizes))


def _address(array: Array) -> int:
    """Where an array begins in memory."""
    return int(array.__array_interface__["data"][0])


def _shape(value: object) -> tuple[int, ...]:
    # True is an int, too
    are_sizes = isinstance(value, list) and all(
        type(size) is int and size >= 0 for size in value
    )
    if not isinstance(value, list) or not are_sizes:
        raise BadContentError("an array whose shape is none")
    if len(value) > MOST_DIMENSIONS:
        raise BadContentError(f"an array of {len(value)} dimensions")
    if math.prod(size or 1 for size in value) >= MOST_ELEMENTS:
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


def _shaped(data: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The array of some bytes, which is no copy."""
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise BadContentError(
            f"an array of shape {shape} and type {dtype} that has another number of bytes"
        )
    return np.frombuffer(data, dtype).reshape(shape)


def _named_tuple(tree: Mapping[str, Any]) -> Tree:
    """The fields of a named tuple of an old Flax; any other dict with the same keys as it is."""
    match tree:
        # {"name": "State", "fields": {"0": "count"}, "values": {"0": 3}}
        case {"name": str(), "fields": {**fields}, "values": {**values}}:
            names = [*fields.values()]
            are_names = all(isinstance(name, str) for name in names)
            if fields.keys() == values.keys() and are_names:
                found = {name: values[key] for key, name in fields.items()}
                return found if len(found) == len(names) else tree
    return tree


def _in_order(tree: object) -> list[Any]:
    """The values of a dict with the keys 0, 1, …, in their order."""
    if isinstance(tree, dict):
        keys = [str(number) for number in range(len(tree))]
        if {*tree} == {*keys}:
            return [tree[key] for key in keys]
    raise BadContentError("an array whose pieces are not numbered")
