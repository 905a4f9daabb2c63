"""The lowest versions that run what `rewrite` emits, and the extras that JAX has today.

They were found by experiment: in environments with the lowest versions that the packages admit, up
to twelve steps of every program in `fixtures/*/after*.py` ran, driven by its scenario, and the
names that `--modernize` emits were looked up.

- optax 0.2.4 is the first whose `rmsprop` takes `eps_in_sqrt`, which is emitted; 0.2.3 fails for
  it. By its metadata, it needs Python 3.9, JAX and jaxlib 0.4.27, and chex 0.1.87, which needs
  NumPy 1.24.1.
- Flax 0.8.0 is the first that can be imported beside that JAX: 0.6.0 fails for `jax.linear_util`,
  and 0.6.11 to 0.7.5 for `jax.config.define_bool_state`.
- On Python 3.10 with optax 0.2.4, Flax 0.8.0, JAX and jaxlib 0.4.27, chex 0.1.87, NumPy 1.24.1 and
  SciPy 1.9.0, all programs train, in all forms and styles. On Python 3.9 all `after.py` do but
  seven, whose scenarios themselves need Python 3.10.
- `jax.Array`, `jax.example_libraries`, `jax.process_index` and `flax.core.pop` exist, too.

The versions below the first five are those that these require, by their metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

LOWEST: Mapping[str, str] = MappingProxyType(
    {
        "python": "3.9",
        "flax": "0.8.0",
        "jax": "0.4.27",
        "jaxlib": "0.4.27",
        "optax": "0.2.4",
        "absl-py": "0.9.0",
        "chex": "0.1.87",
        "ml-dtypes": "0.2.0",
        "numpy": "1.24.1",
        "pyyaml": "5.4.1",
        "rich": "11.1.0",
        "scipy": "1.9.0",
        "toolz": "0.9.0",
        "typing-extensions": "4.2.0",
    }
)
"""By normalized name of the distribution."""


class Needs(NamedTuple):
    """What some code needs.

    Attributes:
      lowest: the lowest version of each distribution, by normalized name, and of `python`.
      replacing: the distributions whose version a replacement of a removed name needs, with that
        name.
    """

    lowest: Mapping[str, str] = LOWEST
    replacing: Mapping[str, str] = MappingProxyType({})


EXTRAS = frozenset(
    (
        "ci",
        "cpu",
        "cuda",
        "cuda12",
        "cuda12-local",
        "cuda13",
        "cuda13-local",
        "k8s",
        "minimum-jaxlib",
        "oneapi",
        "rocm7-local",
        "tpu",
        "xprof",
    )
)
"""The extras of JAX today (0.12), normalized."""

RENAMED_EXTRAS: Mapping[str, str] = MappingProxyType({"cuda12-pip": "cuda12"})
"""Extras that are the same under another name: JAX with the CUDA 12 that comes as packages."""
