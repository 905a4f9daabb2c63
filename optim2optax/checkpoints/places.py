"""Places in state dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """What a state dict has that is no dict, with its places."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def at(tree: Any, path: Path) -> Any:
    """What a state dict has at a place; None if it has none."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def child_at(node: Any, path: Path) -> Any:
    """What a pytree of containers and records has where its state dict has a place."""
    for key in path:
        if isinstance(node, Mapping):
            node = next(child for name, child in node.items() if str(name) == key)
        else:
            node = node[int(key)] if key.isdigit() else getattr(node, key)
    return node


def key_of(key: Any) -> str:
    """What a state dict calls a child that JAX has at a key."""
    return str(next(getattr(key, name) for name in ("name", "key", "idx") if hasattr(key, name)))


def said(path: Path) -> str:
    """A place, for people."""
    return f"`{'/'.join(path)}`" if path else "the top"
