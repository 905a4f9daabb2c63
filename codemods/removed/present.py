"""Names that the packages of today do not have, though no removal of them is known.

Private names are among them. `present.tsv` has, for each public module of up to two words, the
version that was looked at and all its public names. A name that is neither there nor in the table
of removed ones was misspelt, is from a newer version, was put there by somebody else, or was once
imported there by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from codemods.removed.table import row_of
from codemods.vocabulary import PACKAGE

TITLES = {"flax": "Flax", "jax": "JAX", "numpy": "NumPy", "optax": "optax"}
LIKELY = 3
"""The most names that are offered."""

ALIKE = 0.75
"""The least similarity of a misspelt name to an existing one."""


class ModuleVersion(NamedTuple):
    """The public names of a module in a version of its package."""

    version: str
    names: frozenset[str]


class Unknown(NamedTuple):
    """A name that cannot be relied on: why, and which name may be meant.

    Of private names, `version` is empty.
    """

    name: str
    message: str
    remedy: str
    version: str


@cache
def present() -> Mapping[str, ModuleVersion]:
    """The public modules of up to two words."""
    file = files(__package__).joinpath("present.tsv")
    _, *lines = file.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return {
        module: ModuleVersion(version, frozenset(names.split()))
        for module, version, names in rows
    }


@cache
def unknown(name: str) -> Unknown | None:
    """Why a full name cannot be relied on; None if it exists as far as is known, or was removed."""
    is_legacy = f"{name}.".startswith(f"{PACKAGE}.")
    if name.partition(".")[0] not in TITLES or is_legacy:
        return None
    if row_of(name) is not None:
        return None
    for part in _beginnings(name):
        module, _, last = part.rpartition(".")
        # jax._src.core is private, jax.__version__ is not
        if last.startswith("_"):
            return None if last.startswith("__") else _private(name)
        if module in present() and last not in present()[module].names:
            return _missing(part)
    return None


def _beginnings(name: str) -> Iterator[str]:
    """`a.b` and `a.b.c` of `a.b.c`."""
    begun, *words = name.split(".")
    for word in words:
        begun = f"{begun}.{word}"
        yield begun


def _private(name: str) -> Unknown:
    package, _, rest = name.partition(".")
    message = (
        f"`{name}` is private to {TITLES[package]}, which may change it in any release."
    )
    # jax.core.Tracer for jax._src.core.Tracer
    public = _of_that_name(package, rest.rpartition(".")[2])
    remedy = _offered(public) or "Do without it, or pin the version."
    return Unknown(name, message, remedy, version="")


def _missing(name: str) -> Unknown:
    module, _, last = name.rpartition(".")
    version, names = present()[module]
    package = name.partition(".")[0]
    message = f"`{name}` is not in {TITLES[package]} {version}."
    likely = _of_that_name(package, last)
    # jax.numpy.einsum for jax.numpy.einsun
    similar = get_close_matches(last, sorted(names), 1, ALIKE)
    if not likely:
        likely = [f"{module}.{one}" for one in similar]
    remedy = _offered(likely) or "Look up what was meant."
    return Unknown(name, message, remedy, version)


def _of_that_name(package: str, last: str) -> list[str]:
    """The public names of a package that end in a word."""
    found: list[str] = []
    for module, (_, names) in sorted(present().items()):
        is_of_package = module.partition(".")[0] == package
        if is_of_package and last in names:
            found.append(f"{module}.{last}")
    return found


def _offered(names: list[str]) -> str:
    if not names:
        return ""
    quoted = " or ".join(f"`{name}`" for name in names[:LIKELY])
    return f"It may be {quoted}."
