"""Names that the packages of today do not have, though the table of removed ones does not know them, and private names.

`present.tsv` has, for each public module of up to two words, the version that was looked at and all its public names. What is
in neither was misspelt, is from a newer version, was put there by somebody else, or was once imported there by chance.
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
"""As many names are offered at most."""

ALIKE = 0.75
"""How alike a misspelt name has to be to what is there."""


class Module(NamedTuple):
    """What a module has in a version of its package."""

    version: str
    names: frozenset[str]


class Unknown(NamedTuple):
    """A name that cannot be relied on: what it is, why, and what it may be. Of private ones, `version` is empty."""

    name: str
    message: str
    remedy: str
    version: str


@cache
def present() -> Mapping[str, Module]:
    """The public modules of up to two words."""
    _, *lines = files(__package__).joinpath("present.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return {module: Module(version, frozenset(names.split())) for module, version, names in rows}


@cache
def unknown(name: str) -> Unknown | None:
    """What is to be said of a full name; None if it is there, as far as anyone can tell, or if it was removed."""
    if (
        name.partition(".")[0] not in TITLES
        or f"{name}.".startswith(f"{PACKAGE}.")
        or row_of(name) is not None
    ):
        return None
    for part in _beginnings(name):
        module, _, last = part.rpartition(".")
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
    message = f"`{name}` is private to {TITLES[package]}, which may change it in any release."
    last = rest.rpartition(".")[2]
    return Unknown(
        name,
        message,
        _offered(_of_that_name(package, last)) or "Do without it, or pin the version.",
        "",
    )


def _missing(name: str) -> Unknown:
    module, _, last = name.rpartition(".")
    version = present()[module].version
    package = name.partition(".")[0]
    message = f"`{name}` is not in {TITLES[package]} {version}."
    alike = [
        f"{module}.{one}"
        for one in get_close_matches(last, sorted(present()[module].names), 1, ALIKE)
    ]
    likely = _of_that_name(package, last) or alike
    return Unknown(name, message, _offered(likely) or "Look up what was meant.", version)


def _of_that_name(package: str, last: str) -> list[str]:
    """The public names of a package that end in a word."""
    modules = sorted(module for module in present() if module.partition(".")[0] == package)
    return [f"{module}.{last}" for module in modules if last in present()[module].names]


def _offered(names: list[str]) -> str:
    return f"It may be {' or '.join(f'`{name}`' for name in names[:LIKELY])}." if names else ""
