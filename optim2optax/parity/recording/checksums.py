"""Checksums of all bits of an array, and the random bits that they and the sums need.

An old Python and JAX run this as well, from Python 3.8 on.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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
    return bits ^ (bits >> np.uint32(16))
