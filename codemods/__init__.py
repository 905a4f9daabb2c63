"""Codemods that turn `flax.optim` code into optax and `TrainState`: source in, source out.

    from codemods import Source, migrate

    [result] = migrate([Source("train.py", open("train.py", "rb").read())])
    print(result.after.decode())

Needs LibCST alone. Reads no disk, prints nothing, imports no JAX, and runs none of the code it is
given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.model import FileResult, Options, Refusal, Site, Source

if TYPE_CHECKING:
    from codemods.engine import migrate

__all__ = ["FileResult", "Options", "Refusal", "Site", "Source", "migrate"]


def __getattr__(name: str) -> object:
    """Import `migrate` on first use.

    It imports LibCST, which a run without anything to do does not need.
    """
    if name == "migrate":
        from codemods.engine import migrate

        return migrate
    raise AttributeError(name)
