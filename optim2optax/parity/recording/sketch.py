"""Sketches of parameters: small leaves whole, and enough of large ones that any fault shows.

All is computed where the parameters are, inside the user's jitted code too, so that no large array
is handed out. An old Python and JAX run this as well, from Python 3.8 on.
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
    from collections.abc import Callable, Mapping


LARGEST = 4096
"""The most elements of a leaf that is taken whole."""

SAMPLES = 512
BLOCKS = 1024
PIECES = 64
SMALLEST = 2**16
"""The fewest elements of a piece, where a leaf is taken in more than one."""

LANES = 32
"""The number of sums that are taken side by side in a block, which compilers make vectors of."""

_WORDS = {1: np.uint8, 2: np.uint16}


class Part(NamedTuple):
    """One part of a sketch, of a leaf of some shape.

    `whole` is the leaf itself. For a large one, `sample` has the elements at `positions`, `sums` a
    sum of each block of elements with random weights, from 0.5 to 1.5 and of either sign, so that
    few faults cancel, `counts` how many are NaN, infinite and minus infinite, and `digest` a
    checksum of all bits.
    """

    leaf: str
    name: str
    shape: tuple[int, ...]


def sketch(leaves: Mapping[str, Any], whole_sketch: bool = True) -> dict[Part, Any]:
    """The sketch of parameters by their paths, which may be traced.

    The start of a run shows how far it moves. For that, without `whole_sketch`, samples and sums
    suffice; these are NaN where a value of the block is not finite.
    """
    parts: dict[Part, Any] = {}
    for leaf, values in jax.lax.stop_gradient(dict(leaves)).items():
        shape = jnp.shape(values)
        if np.prod(shape) <= LARGEST:
            parts[Part(leaf, "whole", shape)] = values
        else:
            found = _parts(jnp.asarray(values), leaf, whole_sketch)
            parts.update({Part(leaf, name, shape): value for name, value in found.items()})
    return parts


@functools.partial(jax.jit, static_argnums=(1, 2))
def _parts(values: jax.Array, leaf: str, whole_sketch: bool) -> dict[str, jax.Array]:
    flat = values.ravel()
    kept = flat[positions(leaf, flat.size)]
    # Sums and digests are those of real numbers.
    if jnp.issubdtype(flat.dtype, jnp.complexfloating):
        flat = jnp.stack([flat.real, flat.imag], axis=1).ravel()
    rest = _summed(flat) if whole_sketch else _over_pieces(_sums, flat)
    return {"sample": kept, **rest}


def _summed(flat: jax.Array) -> dict[str, jax.Array]:
    """The sums, counts and digest of a leaf.

    Values that are not finite are counted, and left out of the sums. They are looked for only
    where a sum is not finite.
    """
    found = _over_pieces(_sums_and_digest, flat)

    def of_finite(_: Any) -> tuple[Any, jax.Array, jax.Array]:
        counted = _over_pieces(_sums_of_finite, flat)
        return jnp.zeros((), np.bool_), counted["sums"], counted["counts"]

    # A loop of at most one turn: compilers may evaluate both branches of a condition.
    none = jnp.zeros(3, jax.dtypes.canonicalize_dtype(np.int64))
    first = ~jnp.isfinite(jnp.sum(found["sums"])), found["sums"], none
    _, sums, counts = jax.lax.while_loop(lambda state: state[0], of_finite, first)
    return {**found, "sums": sums, "counts": counts}


def _over_pieces(
    facts: Callable[[jax.Array, Any], dict[str, jax.Array]], flat: jax.Array
) -> dict[str, jax.Array]:
    """The facts of a leaf, a piece of its blocks at a time, so that no array of its size is made.

    The last block has the elements that are left over.
    """
    length = flat.size // BLOCKS
    piece = length * (BLOCKS // _pieces(flat.size))
    whole = length * BLOCKS

    def facts_of(start: jax.Array) -> dict[str, jax.Array]:
        return facts(jax.lax.dynamic_slice(flat, (start,), (piece,)).reshape(-1, length), start)

    found = jax.lax.map(facts_of, np.arange(0, whole, piece))
    rest = facts(flat[whole:].reshape(1, -1), whole)
    total = {"sums": jnp.append(found.pop("sums").ravel(), rest.pop("sums"))}
    for name, values in found.items():
        total[name] = values.sum(axis=0, dtype=values.dtype) + rest[name]
    return total


def _pieces(size: int) -> int:
    """How many pieces a leaf is taken in, a power of two: each costs some time by itself."""
    return min(PIECES, 1 << (max(size // SMALLEST, 1).bit_length() - 1))


def _sums_and_digest(blocks: jax.Array, start: Any) -> dict[str, jax.Array]:
    sums = _sums(blocks, start)
    return {**sums, "digest": _digest(blocks.ravel(), _bits_from(start, blocks.size))}


def _sums(blocks: jax.Array, start: Any) -> dict[str, jax.Array]:
    """The weighted sum of each block, of which the first begins at an element of the leaf."""
    bits = _bits_from(start, blocks.size)
    widest = jax.dtypes.canonicalize_dtype(np.float64)
    # The last bit is the sign, the others are a number from 0.5 to 1.5.
    magnitudes = 0.5 + (bits >> np.uint32(1)).astype(widest) / 2.0**31
    weights = magnitudes * jnp.where(bits & np.uint32(1), 1.0, -1.0)
    weighted = blocks.astype(widest) * weights.reshape(blocks.shape)
    number, length = blocks.shape
    rows = length // LANES
    side_by_side = weighted[:, : rows * LANES].reshape(number, rows, LANES)
    rest = weighted[:, rows * LANES :]
    return {"sums": side_by_side.sum(axis=1).sum(axis=1) + rest.sum(axis=1)}


def _sums_of_finite(blocks: jax.Array, start: Any) -> dict[str, jax.Array]:
    """The sums of finite values, and the counts of the others by their kinds."""
    values = blocks.astype(jax.dtypes.canonicalize_dtype(np.float64))
    counts = [
        jnp.isnan(values).sum(),
        (values == np.inf).sum(),
        (values == -np.inf).sum(),
    ]
    sums = _sums(jnp.where(jnp.isfinite(values), values, 0.0), start)
    return {**sums, "counts": jnp.stack(counts)}


def largest(values: jax.Array) -> jax.Array:
    """The largest absolute value that is finite, or 0, taken a piece at a time as well."""

    def of(part: jax.Array) -> jax.Array:
        absolute = jnp.abs(part)
        return jnp.max(jnp.where(jnp.isfinite(absolute), absolute, 0), initial=0)

    flat = jnp.ravel(values)
    number = _pieces(flat.size)
    piece = flat.size // number
    if number == 1:
        return of(flat)

    def of_piece(start: jax.Array) -> jax.Array:
        return of(jax.lax.dynamic_slice(flat, (start,), (piece,)))

    found = jax.lax.map(of_piece, np.arange(number) * piece)
    return jnp.maximum(jnp.max(found), of(flat[number * piece :]))


def positions(leaf: str, size: int) -> NDArray[np.int64]:
    """The elements of a large leaf that are its sample, in flat order: always the same ones."""
    chosen = np.random.default_rng(zlib.crc32(leaf.encode())).integers(size, size=SAMPLES)
    return np.unique(chosen)


def block(number: int, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first and the last element of a block, by their indices in the leaf.

    The last block has the elements that are left over.
    """
    size = int(np.prod(shape))
    length = size // BLOCKS
    end = size if number == BLOCKS else (number + 1) * length
    return _index(number * length, shape), _index(end - 1, shape)


def _index(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(index) for index in np.unravel_index(position, shape))


def _bits_from(start: Any, size: int) -> jax.Array:
    """Random bits for so many elements from one of the leaf on."""
    return _random_bits(jnp.asarray(start).astype(np.uint32) + jnp.arange(size, dtype=np.uint32))


def _random_bits(numbers: jax.Array) -> jax.Array:
    """A hash of each number. Multiplications wrap."""
    # The constants are those of Fibonacci hashing and of MurmurHash3's last mix.
    bits = numbers * np.uint32(0x9E3779B1)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ (bits >> np.uint32(shift))) * np.uint32(factor)
    return bits ^ (bits >> np.uint32(16))


def _digest(flat: jax.Array, bits: jax.Array) -> jax.Array:
    """Checksums of all bits.

    In each sum of words or in one of two, factors are odd, so that every change of a word counts.
    """
    if flat.dtype == np.bool_:
        flat = flat.astype(np.uint8)
    odd = bits | np.uint32(1)
    factors = odd, (odd * odd) ^ (odd >> np.uint32(7))
    # Upper bits are mixed into lower ones, or else two changes of a sign would cancel.
    if flat.dtype.itemsize == 8 and jax.dtypes.canonicalize_dtype(np.uint64) == np.uint64:
        wide = jax.lax.bitcast_convert_type(flat, np.uint64)
        low, high = (factor.astype(np.uint64) for factor in factors)
        mixed = wide ^ (wide >> np.uint64(32))
        return jnp.sum(mixed * (low | (high << np.uint64(32))), dtype=np.uint64)[None]
    word = _WORDS.get(flat.dtype.itemsize, np.uint32)
    words = jax.lax.bitcast_convert_type(flat, word).astype(np.uint32)
    words = (words ^ (words >> np.uint32(16))).reshape(flat.size, -1)
    sums = [jnp.sum(words * factor[:, None], axis=0, dtype=np.uint32) for factor in factors]
    return jnp.concatenate(sums)
