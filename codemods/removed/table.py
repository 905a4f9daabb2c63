"""The tables of what was removed (`names.tsv`) and of what is taken otherwise (`changed.tsv`).

The first has a row for each name that JAX, Flax, optax, NumPy or Python's `collections` had and
have no more. The columns are

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
- `none`: nothing takes its place.

The names below a removed module have rows of their own only if something takes their place.

The second table has what is still there, and the version since which it is taken otherwise. Its
`how` is

- `keyword`: `name` is `function(keyword)`, and the keyword is `to` now;
- `argument`: `name` is `function()`, which has to be given `to` now, as its first argument;
- `position`: `name` is `function(2)`, and the arguments from position 2 on, counted from 0, have to
  be given by the keywords in `to`;
- `array`: the arguments of `name` at the positions in `to` have to be arrays, and may not be lists;
- `carry`: `name` is the call of a cell that has no features; their number is `to` of its first
  argument;
- `class_carry`: `name` was a method of a class, and is one of its instances;
- `method`: what `name` is a method of is a plain dict now, and `to` is a function that takes both;
- `mapping`, `list`, `default`, `unsigned`: a form of code, which `rules/changed` describes;
- `none`: it has to be looked at, for the reason in `to`.

There, `function()` in a name stands for what a call of the function gives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from codemods.vocabulary import PACKAGE

ATTRIBUTE = "attribute"
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
    def function(self) -> str:
        """`function` of `function(keyword)`."""
        return self.name.rpartition("(")[0] or self.name

    @property
    def parameter(self) -> str:
        """`keyword` of `function(keyword)`."""
        return self.name.rpartition("(")[2].removesuffix(")")


@dataclass(frozen=True)
class RemovedUse:
    """A use of a removed name, or what keeps a file from being read, which has no row."""

    path: str
    line: int
    row: Removed | None
    problem: str = ""


MODELS = ("flax.nn", "flax.deprecated")
"""What models were written with before `flax.linen`."""

LEGACY = Removed(PACKAGE, "0.6.0", "none", "", "", "", "Move it to optax.")


@cache
def _rows(table: str) -> list[Removed]:
    file = files(__package__).joinpath(table)
    _, *lines = file.read_text(encoding="utf-8").splitlines()
    return [Removed(*line.split("\t")) for line in lines]


@cache
def table() -> Mapping[str, Removed]:
    """All removed names, with their rows."""
    return {row.name: row for row in _rows("names.tsv") if row.how != ATTRIBUTE}


@cache
def once_modules() -> Mapping[str, Removed]:
    """The modules that are attributes today, so that only `import a.b` fails."""
    return {row.name: row for row in _rows("names.tsv") if row.how == ATTRIBUTE}


@cache
def changed() -> Mapping[str, Removed]:
    """What is still there and is taken otherwise, with its rows."""
    return {row.name: row for row in _rows("changed.tsv")}


@cache
def changed_arguments() -> Mapping[str, Sequence[Removed]]:
    """The rows on arguments of each function."""
    found: dict[str, list[Removed]] = defaultdict(list)
    for row in changed().values():
        found[row.function].append(row)
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
