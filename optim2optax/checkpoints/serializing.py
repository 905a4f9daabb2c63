"""State dicts, written in the format of `flax.serialization`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from optim2optax.checkpoints import CheckpointError, to_be_written
from optim2optax.checkpoints.flax_msgpack import (
    CHUNKED,
    CHUNKS,
    COMPLEX,
    DTYPES,
    NDARRAY,
    SCALAR,
    SHAPE,
    Tree,
)
from optim2optax.project.replacing import replacing

LARGEST_PIECE = 2**30
"""The most bytes of a piece: Flax stores a larger array in several pieces."""


def write(path: Path, tree: Tree) -> None:
    """Write a state dict as `flax.serialization.to_bytes` would.

    It is written array by array, so that no second copy is in memory. The file appears whole or not
    at all.

    Raises:
      CheckpointError: if an array cannot be stored.
      UnwritablePathError: if it cannot be written.
    """
    with to_be_written(path), replacing(path) as file:
        for part in _parts(tree, msgpack.Packer(strict_types=True)):
            file.write(part)


def _parts(tree: Tree, packer: msgpack.Packer) -> Iterator[bytes | memoryview]:
    """The bytes of a state dict, one piece after the other."""
    if isinstance(tree, Mapping):
        yield packer.pack_map_header(len(tree))
        for key, value in tree.items():
            yield packer.pack(key)
            yield from _parts(value, packer)
    elif isinstance(tree, complex):
        yield packer.pack_ext_type(COMPLEX, msgpack.packb((tree.real, tree.imag)))
    elif tree is None or isinstance(tree, bool | int | float | str | bytes):
        yield packer.pack(tree)
    else:
        code = SCALAR if isinstance(tree, np.generic) else NDARRAY
        yield from _array_parts(np.asarray(tree), code, packer)


def _array_parts(
    array: np.ndarray[Any, Any], code: int, packer: msgpack.Packer
) -> Iterator[bytes | memoryview]:
    if array.dtype.name not in DTYPES:
        raise CheckpointError(
            f"an array of type {array.dtype} cannot be stored: Flax has no name for it."
        )
    flat = np.ascontiguousarray(array).reshape(-1)
    length = max(1, LARGEST_PIECE // array.itemsize)
    if array.nbytes <= LARGEST_PIECE:
        yield from _piece(flat, array.shape, code)
        return
    starts = range(0, flat.size, length)
    shape = {str(axis): size for axis, size in enumerate(array.shape)}
    # {"__msgpack_chunked_array__": True, "shape": {"0": …}, "chunks": {"0": …, "1": …}}
    yield packer.pack_map_header(3)
    yield packer.pack(CHUNKED) + packer.pack(True)
    yield packer.pack(SHAPE) + packer.pack(shape)
    yield packer.pack(CHUNKS) + packer.pack_map_header(len(starts))
    for number, start in enumerate(starts):
        piece = flat[start : start + length]
        yield packer.pack(str(number))
        yield from _piece(piece, piece.shape, code)


def _piece(
    flat: np.ndarray[Any, Any], shape: tuple[int, ...], code: int
) -> Iterator[bytes | memoryview]:
    """An array as Flax's extension type: in it a list of shape, name of the dtype, and bytes."""
    content = flat.view(np.uint8).data if flat.size else memoryview(b"")
    # 0x93 begins a list of three, 0xc6 bytes and 0xc9 an extension type of any length
    head = (
        b"\x93"
        + msgpack.packb(shape)
        + msgpack.packb(flat.dtype.name)
        + b"\xc6"
        + len(content).to_bytes(4, "big")
    )
    yield b"\xc9" + (len(head) + len(content)).to_bytes(4, "big") + bytes([code]) + head
    yield content
