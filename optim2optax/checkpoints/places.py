"""Places in state dicts, and what optax keeps at them for a parameter."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from codemods.optimizers import optimizers
from optim2optax.checkpoints.contents import COMPOSITE

Path = tuple[str, ...]

WEIGHT_NORM = ("direction", "scale")


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """What a state dict has that is no dict, with its places."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def field_of(path: Path, params: Collection[Path]) -> tuple[Path, Path] | None:
    """The place of a field in a state of optax, and the parameter for which it keeps something at a path; None if it does not."""
    for length in range(len(path) - 1, -1, -1):
        field, param = path[: len(path) - length], path[len(path) - length :]
        named = [word for word in field if not word.isdigit()]
        if param in params and named and named[-1] in (*by_new_field(), *WEIGHT_NORM):
            return field, param
    return None


@cache
def by_new_field() -> Mapping[str, tuple[str, ...]]:
    """The names of what legacy optimizers keep for a parameter, by the name of the field of optax with the same values."""
    found: dict[str, tuple[str, ...]] = {}
    for name, optimizer in optimizers().items():
        for old, new in optimizer.state.items() if name not in (COMPOSITE, "WeightNorm") else ():
            found[new] = tuple(dict.fromkeys((*found.get(new, ()), old)))
    return found


def said(path: Path) -> str:
    """A place, for people."""
    return f"`{'/'.join(path)}`" if path else "the top"
