"""The versions that the replacements of removed names need, if above the lowest versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from packaging.version import Version

from codemods.model import Need
from optim2optax.dependencies.needs import Needs

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
    return Needs(lowest, replacing)


def _raise(lowest: dict[str, str], name: str, version: str) -> bool:
    """Raise the lowest version of a name; whether it was lower before."""
    is_higher = name in lowest and Version(version) > Version(lowest[name])
    if is_higher:
        lowest[name] = version
    return is_higher
