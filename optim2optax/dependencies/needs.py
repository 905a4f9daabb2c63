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

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from packaging.version import Version

from codemods.model import Need
from codemods.vocabulary import words

OPTAX = "optax"

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
      imports: the distributions that the code imports, so that they have to be declared.
    """

    lowest: Mapping[str, str] = LOWEST
    replacing: Mapping[str, str] = MappingProxyType({})
    imports: tuple[str, ...] = (OPTAX,)


EXTRAS = frozenset(
    words(
        "ci cpu cuda cuda12 cuda12-local cuda13 cuda13-local k8s minimum-jaxlib oneapi "
        "rocm7-local tpu xprof"
    )
)
"""The extras of JAX today (0.12), normalized."""

RENAMED_EXTRAS: Mapping[str, str] = MappingProxyType({"cuda12-pip": "cuda12"})
"""Extras that are the same under another name: JAX with the CUDA 12 that comes as packages."""


NAMES = ("python", "jaxlib", "ml-dtypes", "numpy", "scipy")
JAX: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "0.4.31": ("3.10", "0.4.30", "0.2.0", "1.24", "1.10"),
        "0.4.33": ("3.10", "0.4.33", "0.2.0", "1.24", "1.10"),
        "0.4.34": ("3.10", "0.4.34", "0.2.0", "1.24", "1.10"),
        "0.4.35": ("3.10", "0.4.34", "0.4.0", "1.24", "1.10"),
        "0.4.36": ("3.10", "0.4.36", "0.4.0", "1.24", "1.10"),
        "0.4.38": ("3.10", "0.4.38", "0.4.0", "1.24", "1.10"),
        "0.5.0": ("3.10", "0.5.0", "0.4.0", "1.25", "1.11.1"),
        "0.5.1": ("3.10", "0.5.1", "0.4.0", "1.25", "1.11.1"),
        "0.5.3": ("3.10", "0.5.3", "0.4.0", "1.25", "1.11.1"),
        "0.6.0": ("3.10", "0.6.0", "0.5.0", "1.25", "1.11.1"),
        "0.6.1": ("3.10", "0.6.1", "0.5.0", "1.25", "1.11.1"),
        "0.7.0": ("3.11", "0.7.0", "0.5.0", "1.26", "1.12"),
        "0.7.1": ("3.11", "0.7.1", "0.5.0", "1.26", "1.12"),
        "0.7.2": ("3.11", "0.7.2", "0.5.0", "2.0", "1.13"),
        "0.8.0": ("3.11", "0.8.0", "0.5.0", "2.0", "1.13"),
        "0.8.1": ("3.11", "0.8.1", "0.5.0", "2.0", "1.13"),
        "0.8.2": ("3.11", "0.8.2", "0.5.0", "2.0", "1.13"),
        "0.9.0": ("3.11", "0.9.0", "0.5.0", "2.0", "1.13"),
        "0.9.2": ("3.11", "0.9.2", "0.5.0", "2.0", "1.13"),
        "0.10.0": ("3.11", "0.10.0", "0.5.0", "2.0", "1.14"),
        "0.10.1": ("3.11", "0.10.1", "0.5.0", "2.0", "1.14"),
    }
)
"""The lowest versions of `NAMES` that each release of JAX admits, on the lowest Python.

Source: `Requires-Python` and `Requires-Dist` in the metadata of the published wheels.
"""


def raised(needs: Needs, found: Iterable[Need]) -> Needs:
    """The needs with those of some replacements of removed names, and those of JAX in turn."""
    lowest = dict(needs.lowest)
    replacing = dict(needs.replacing)
    for package, version, removed in found:
        is_raised = _raise(lowest, package, version)
        if is_raised:
            replacing[package] = removed
    if "jax" in replacing:
        # a later JAX needs a later Python, jaxlib, …
        for name, version in zip(NAMES, JAX[lowest["jax"]], strict=False):
            _raise(lowest, name, version)
    return Needs(lowest, replacing, needs.imports)


def _raise(lowest: dict[str, str], name: str, version: str) -> bool:
    """Raise the lowest version of a name; whether it was lower before."""
    is_higher = name in lowest and Version(version) > Version(lowest[name])
    if is_higher:
        lowest[name] = version
    return is_higher
