"""Sketches of parameters: small leaves whole, and enough of large ones that any fault shows.

All is computed where the parameters are, inside the user's jitted code too, so that no large array
is handed out.
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
            continue
        for name, value in _parts(jnp.asarray(values), leaf, whole_sketch).items():
            parts[Part(leaf, name, shape)] = value
    return parts


@functools.partial(jax.jit, static_argnums=(1, 2))
def _parts(values: jax.Array, leaf: str, whole_sketch: bool) -> dict[str, jax.Array]:
    """The parts of a large leaf, by their names."""
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
        done = jnp.zeros((), np.bool_)
        return done, counted["sums"], counted["counts"]

    # A loop of at most one turn: compilers may evaluate both branches of a condition.
    none = jnp.zeros(3, jax.dtypes.canonicalize_dtype(np.int64))
    is_needed = ~jnp.isfinite(jnp.sum(found["sums"]))
    first = is_needed, found["sums"], none
    _, sums, counts = jax.lax.while_loop(lambda state: state[0], of_finite, first)
    return {**found, "sums": sums, "counts": counts}


def _over_pieces(
    facts: Callable[[jax.Array, Any], dict[str, jax.Array]], flat: jax.Array
) -> dict[str, jax.Array]:
    """The facts of a leaf, a piece of its blocks at a time, so that no array of its size is made.

    The last block has the elements that are left over.
    """
    length = flat.size // BLOCKS
    blocks_of_piece = BLOCKS // _pieces(flat.size)
    piece = length * blocks_of_piece
    whole = length * BLOCKS

    def facts_of(start: jax.Array) -> dict[str, jax.Array]:
        elements = jax.lax.dynamic_slice(flat, (start,), (piece,))
        blocks = elements.reshape(-1, length)
        return facts(blocks, start)

    starts = np.arange(0, whole, piece)
    found = jax.lax.map(facts_of, starts)
    # 1,000,000 elements are 1024 blocks of 976, and 576 more.
    left_over = flat[whole:].reshape(1, -1)
    rest = facts(left_over, whole)
    # Each block has a sum of its own; all else is of the whole leaf.
    sums = jnp.append(found.pop("sums").ravel(), rest.pop("sums"))
    total = {"sums": sums}
    for name, values in found.items():
        over_pieces = values.sum(axis=0, dtype=values.dtype)
        total[name] = over_pieces + rest[name]
    return total


def _pieces(size: int) -> int:
    """How many pieces a leaf is taken in, a power of two: each costs some time by itself."""
    wanted = max(size // SMALLEST, 1)
    power = wanted.bit_length() - 1
    return min(PIECES, 1 << power)


def _sums_and_digest(blocks: jax.Array, start: Any) -> dict[str, jax.Array]:
    sums = _sums(blocks, start)
    bits = bits_from(start, blocks.size)
    return {**sums, "digest": digest(blocks.ravel(), bits)}


def _sums(blocks: jax.Array, start: Any) -> dict[str, jax.Array]:
    """The weighted sum of each block, of which the first begins at an element of the leaf."""
    bits = bits_from(start, blocks.size)
    widest = jax.dtypes.canonicalize_dtype(np.float64)
    # The last bit is the sign, the others are a number from 0.5 to 1.5.
    fractions = (bits >> np.uint32(1)).astype(widest) / 2.0**31
    signs = jnp.where(bits & np.uint32(1), 1.0, -1.0)
    weights = (0.5 + fractions) * signs
    weighted = blocks.astype(widest) * weights.reshape(blocks.shape)
    number, length = blocks.shape
    rows = length // LANES
    # What does not fill a row of lanes is summed by itself.
    in_lanes = rows * LANES
    side_by_side = weighted[:, :in_lanes].reshape(number, rows, LANES)
    of_lanes = side_by_side.sum(axis=1).sum(axis=1)
    of_rest = weighted[:, in_lanes:].sum(axis=1)
    return {"sums": of_lanes + of_rest}


def _sums_of_finite(blocks: jax.Array, start: Any) -> dict[str, jax.Array]:
    """The sums of finite values, and the counts of the others by their kinds."""
    values = blocks.astype(jax.dtypes.canonicalize_dtype(np.float64))
    counts = [
        jnp.isnan(values).sum(),
        (values == np.inf).sum(),
        (values == -np.inf).sum(),
    ]
    finite = jnp.where(jnp.isfinite(values), values, 0.0)
    sums = _sums(finite, start)
    return {**sums, "counts": jnp.stack(counts)}


@jax.jit
def largest(values: jax.Array) -> jax.Array:
    """The largest absolute value that is finite, or 0, taken a piece at a time as well."""

    def of(blocks: jax.Array, _: Any) -> dict[str, jax.Array]:
        absolute = jnp.abs(blocks)
        finite = jnp.where(jnp.isfinite(absolute), absolute, 0)
        return {"sums": jnp.max(finite, axis=1, initial=0)}

    flat = jnp.ravel(values)
    of_blocks = of(flat[None], 0) if flat.size <= LARGEST else _over_pieces(of, flat)
    return jnp.max(of_blocks["sums"])


def positions(leaf: str, size: int) -> NDArray[np.int64]:
    """The elements of a large leaf that are its sample, in flat order: always the same ones."""
    # Both sides, and an old Python, draw by the name of the leaf.
    seed = zlib.crc32(leaf.encode())
    chosen = np.random.default_rng(seed).integers(size, size=SAMPLES)
    return np.unique(chosen)


def block(
    number: int, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first and the last element of a block, by their indices in the leaf.

    The last block has the elements that are left over.
    """
    size = int(np.prod(shape))
    length = size // BLOCKS
    start = number * length
    end = size if number == BLOCKS else start + length
    return index_of(start, shape), index_of(end - 1, shape)


def index_of(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an element by its position in flat order."""
    return tuple(int(index) for index in np.unravel_index(position, shape))


WORDS = {1: np.uint8, 2: np.uint16}
"""The types of words by their bytes; a word of any other element has four."""


def digest(flat: jax.Array, bits: jax.Array) -> jax.Array:
    """Checksums of all bits.

    In each sum of words or in one of two, factors are odd, so that every change of a word counts.
    """
    if flat.dtype == np.bool_:
        flat = flat.astype(np.uint8)
    odd = bits | np.uint32(1)
    other = (odd * odd) ^ (odd >> np.uint32(7))
    factors = odd, other
    has_wide_words = jax.dtypes.canonicalize_dtype(np.uint64) == np.uint64
    if flat.dtype.itemsize == 8 and has_wide_words:
        return _digest_of_wide(flat, factors)
    word = WORDS.get(flat.dtype.itemsize, np.uint32)
    words = jax.lax.bitcast_convert_type(flat, word).astype(np.uint32)
    # Upper bits are mixed into lower ones, or else two changes of a sign would cancel.
    mixed = words ^ (words >> np.uint32(16))
    # Elements of eight bytes are two words each, where JAX has no wide ones.
    by_element = mixed.reshape(flat.size, -1)
    sums = []
    for factor in factors:
        products = by_element * factor[:, None]
        sums.append(jnp.sum(products, axis=0, dtype=np.uint32))
    return jnp.concatenate(sums)


def _digest_of_wide(flat: jax.Array, factors: tuple[jax.Array, jax.Array]) -> jax.Array:
    """The checksum of elements of eight bytes, each of which is one word."""
    words = jax.lax.bitcast_convert_type(flat, np.uint64)
    mixed = words ^ (words >> np.uint64(32))
    low, high = (factor.astype(np.uint64) for factor in factors)
    both = low | (high << np.uint64(32))
    return jnp.sum(mixed * both, dtype=np.uint64)[None]


def bits_from(start: Any, size: int) -> jax.Array:
    """Random bits for so many elements from one of the leaf on."""
    first = jnp.asarray(start).astype(np.uint32)
    return _hashed(first + jnp.arange(size, dtype=np.uint32))


def _hashed(numbers: jax.Array) -> jax.Array:
    """A hash of each number. Multiplications wrap."""
    # The constants are those of Fibonacci hashing and of MurmurHash3's last mix.
    bits = numbers * np.uint32(0x9E3779B1)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = bits ^ (bits >> np.uint32(shift))
        bits = mixed * np.uint32(factor)
    hashed: jax.Array = bits ^ (bits >> np.uint32(16))
    return hashed
