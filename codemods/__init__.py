"""Codemods that turn `flax.optim` code into optax and `TrainState`: source in, source out.

    from codemods import Source, migrate

    [result] = migrate([Source("train.py", open("train.py", "rb").read())])
    print(result.after.decode())

Needs LibCST alone. Reads no disk, prints nothing, imports no JAX, runs none of the code it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.model import FileResult, Options, Refusal, Site, Source

if TYPE_CHECKING:
    from codemods.engine import migrate

__all__ = ["FileResult", "Options", "Refusal", "Site", "Source", "migrate"]


def __getattr__(name: str) -> object:
    """`migrate` on first use: it imports LibCST, which a run that finds nothing to do does not need."""
    if name == "migrate":
        from codemods.engine import migrate

        return migrate
    raise AttributeError(name)
