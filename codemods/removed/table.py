"""The table of removed names, read from `names.tsv`.

It has a row for each name that JAX, Flax, optax, NumPy or Python's `collections` had and have no
more. The columns are

- `name`: the full name;
- `removed_in`: the first version without it;
- `how`: how it is replaced;
- `to`: what it becomes;
- `module`: the module whose import makes that available;
- `since`: the first version of its package that has it, as far as it was looked up;
- `note`: one sentence for what has to be written anew.

`how` is

- `same`: `to` is another name of the same thing;
- `call`: a call of it becomes the expression in `to`, as in `(x, y) -> y`, in whose parameters its
  arguments are;
- `drop`: a call of it, without arguments, can be left out;
- `helper`: a function with the name in `to`, which is written into the file, does the same;
- `value`: `to` is an expression with the same value;
- `attribute`: it was a module and is an attribute of the same name, so that only `import a.b`
  fails;
- `keyword`: `name` is `function(keyword)`, and the keyword is `to` now;
- `argument`: `name` is `function()`, which has to be given `to` now, as its first argument;
- `none`: nothing takes its place.

The names below a removed module have rows of their own only if something takes their place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from codemods.vocabulary import PACKAGE

ARGUMENT = "argument"
ATTRIBUTE = "attribute"
KEYWORD = "keyword"
NEVER = "never"
"""The `how` of a name that today's package does not have, though no removal is known.

Its `removed_in` is the version that was looked at.
"""


@dataclass(frozen=True)
class Removed:
    """A row: what was removed, and what replaces it."""

    name: str
    removed_in: str
    how: str
    to: str
    module: str
    since: str
    note: str

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def parameter(self) -> str:
        """`keyword` of `function(keyword)`."""
        return self.name.partition("(")[2].removesuffix(")")


@dataclass(frozen=True)
class RemovedUse:
    """A use of a removed name, or what keeps a file from being read, which has no row."""

    path: str
    line: int
    row: Removed | None
    problem: str = ""


MODELS = ("flax.nn", "flax.deprecated")
"""What models were written with before `flax.linen`."""

FROZEN = {
    name: Removed(
        f"flax.core.FrozenDict.{name}",
        "0.7.0",
        "same",
        f"flax.core.{name}",
        "flax",
        "",
        "",
    )
    for name in ("copy", "pop", "unfreeze")
}
"""The methods of the variables of a model that the plain dicts of today lack, or have otherwise."""

LEGACY = Removed(PACKAGE, "0.6.0", "none", "", "", "", "Move it to optax.")


@cache
def _rows() -> list[Removed]:
    file = files(__package__).joinpath("names.tsv")
    _, *lines = file.read_text(encoding="utf-8").splitlines()
    return [Removed(*line.split("\t")) for line in lines]


@cache
def table() -> Mapping[str, Removed]:
    """All removed names, with their rows."""
    return {row.name: row for row in _rows() if row.how != ATTRIBUTE}


@cache
def once_modules() -> Mapping[str, Removed]:
    """The modules that are attributes today, so that only `import a.b` fails."""
    return {row.name: row for row in _rows() if row.how == ATTRIBUTE}


@cache
def changed_arguments() -> Mapping[str, Sequence[Removed]]:
    """The rows on arguments of each function."""
    found: dict[str, list[Removed]] = defaultdict(list)
    for row in table().values():
        if row.how in (ARGUMENT, KEYWORD):
            found[row.name.partition("(")[0]].append(row)
    return found


@cache
def packages() -> frozenset[str]:
    """The packages of the names."""
    return frozenset(row.package for row in table().values())


def row_of(name: str) -> Removed | None:
    """The row of a name, or of a removed module above it.

    None for what exists today, or never did.
    """
    rows = table()
    for prefix in _prefixes(name):
        # jax.experimental.maps, for `jax.experimental.maps.xmap`
        if prefix in rows:
            return rows[prefix]
    return None


def _prefixes(name: str) -> Iterator[str]:
    """`a.b.c`, `a.b` and `a` of `a.b.c`."""
    while name:
        yield name
        name = name.rpartition(".")[0]
