"""What is kept of parameters: small leaves whole, and of large ones so much that a fault in one element shows.

All is computed where the parameters are, inside the user's jitted code too, so that no large array is handed out. An old Python
and JAX run this as well, from Python 3.8 on.
"""

from __future__ import annotations

import functools
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST = 4096
"""Leaves of at most so many elements are kept whole."""

SAMPLES = 512
BLOCKS = 1024
PIECES = 64

_WORDS = {1: np.uint8, 2: np.uint16}


class Part(NamedTuple):
    """One part of a sketch, of a leaf of some shape.

    `whole` is the leaf itself. Of a large one `sample` holds the elements at `positions`, `sums` a sum of each block of
    elements with random weights, from 0.5 to 1.5 and of either sign, so that few faults cancel, `counts` how many are NaN,
    infinite and minus infinite, and `digest` a checksum of all bits.
    """

    leaf: str
    name: str
    shape: tuple[int, ...]


def sketch(leaves: Mapping[str, Any]) -> dict[Part, Any]:
    """The sketch of parameters by their paths, which may be traced."""
    parts: dict[Part, Any] = {}
    for leaf, values in jax.lax.stop_gradient(dict(leaves)).items():
        shape = jnp.shape(values)
        if np.prod(shape) <= LARGEST:
            parts[Part(leaf, "whole", shape)] = values
        else:
            found = _parts(jnp.asarray(values), leaf)
            parts.update({Part(leaf, name, shape): value for name, value in found.items()})
    return parts


@functools.partial(jax.jit, static_argnums=1)
def _parts(values: jax.Array, leaf: str) -> dict[str, jax.Array]:
    flat = values.ravel()
    kept = flat[positions(leaf, flat.size)]
    if jnp.issubdtype(flat.dtype, jnp.complexfloating):
        flat = jnp.stack([flat.real, flat.imag], axis=1).ravel()
    return {"sample": kept, **_summed(flat)}


def _summed(flat: jax.Array) -> dict[str, jax.Array]:
    """The sums and counts of a leaf, a piece of its blocks at a time, so that no array of its size is made."""
    length = flat.size // BLOCKS
    piece, whole = length * (BLOCKS // PIECES), length * BLOCKS

    def facts_of(start: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        return _facts(jax.lax.dynamic_slice(flat, (start,), (piece,)).reshape(-1, length), start)

    sums, counts, digests = jax.lax.map(facts_of, np.arange(0, whole, piece))
    rest = _facts(flat[whole:].reshape(1, -1), whole)
    return {
        "sums": jnp.append(sums.ravel(), rest[0]),
        "counts": counts.sum(axis=0) + rest[1],
        "digest": digests.sum(axis=0, dtype=np.uint32) + rest[2],
    }


def _facts(blocks: jax.Array, start: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The sum of each block, and the counts and the digest of all, which begin at an element of the leaf."""
    flat = blocks.ravel()
    bits = _random_bits(jnp.asarray(start).astype(np.uint32) + jnp.arange(flat.size, dtype=np.uint32))
    widest = jax.dtypes.canonicalize_dtype(np.float64)
    values = flat.astype(widest)
    weights = (0.5 + (bits >> np.uint32(1)).astype(widest) / 2**31) * jnp.where(bits & np.uint32(1), 1.0, -1.0)
    weighted = jnp.where(jnp.isfinite(values), values, 0.0) * weights
    counts = jnp.stack([jnp.isnan(values).sum(), (values == np.inf).sum(), (values == -np.inf).sum()])
    return weighted.reshape(blocks.shape).sum(axis=1), counts, _digest(flat, bits)


def positions(leaf: str, size: int) -> NDArray[np.int64]:
    """Which elements of a large leaf its sample holds, in flat order: always the same ones."""
    chosen = np.random.default_rng(zlib.crc32(leaf.encode())).integers(size, size=SAMPLES)
    return np.unique(chosen)


def block(number: int, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first and the last element of a block, by their indices in the leaf. Whatever is left over is the last block."""
    size = int(np.prod(shape))
    length = size // BLOCKS
    first, last = number * length, (size if number == BLOCKS else (number + 1) * length) - 1
    return _index(first, shape), _index(last, shape)


def _index(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(index) for index in np.unravel_index(position, shape))


def _random_bits(numbers: jax.Array) -> jax.Array:
    """A hash of each number. Multiplications wrap."""
    bits = numbers * np.uint32(0x9E3779B1)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ (bits >> np.uint32(shift))) * np.uint32(factor)
    return bits ^ (bits >> np.uint32(16))


def _digest(flat: jax.Array, bits: jax.Array) -> jax.Array:
    if flat.dtype == np.bool_:
        flat = flat.astype(np.uint8)
    words = jax.lax.bitcast_convert_type(flat, _WORDS.get(flat.dtype.itemsize, np.uint32)).astype(np.uint32)
    words = words.reshape(flat.size, -1)
    odd = (bits | np.uint32(1))[:, None]
    return jnp.concatenate(
        [jnp.sum(words * factor, axis=0, dtype=np.uint32) for factor in (odd, (odd * odd) ^ (odd >> np.uint32(7)))]
    )
