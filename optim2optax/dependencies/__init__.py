"""The dependencies of the new code, in files that declare dependencies: text in, text out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optim2optax.dependencies.file_names import declares

if TYPE_CHECKING:
    from optim2optax.dependencies.editing import dependencies

__all__ = ["declares", "dependencies"]


def __getattr__(name: str) -> object:
    """`dependencies` on first use: it imports what reads the files, which most runs do not need."""
    if name == "dependencies":
        from optim2optax.dependencies.editing import dependencies

        return dependencies
    raise AttributeError(name)
