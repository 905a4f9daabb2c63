"""Places in state dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The leaves of a state dict, which are all that is not a dict, with their places."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def at(tree: Any, path: Path) -> Any:
    """What a state dict has at a place; None if it does not have the place."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def child_at(node: Any, path: Path) -> Any:
    """The child of a pytree of containers and records at a place in its state dict."""
    for key in path:
        if isinstance(node, Mapping):
            # keys need not be strings, but those of a state dict are
            node = next(child for name, child in node.items() if str(name) == key)
        elif key.isdigit():
            node = node[int(key)]
        else:
            node = getattr(node, key)
    return node


def key_of(key: Any) -> str:
    """The key in a state dict for a key in a path of JAX."""
    # of GetAttrKey, DictKey and SequenceKey
    attribute = next(name for name in ("name", "key", "idx") if hasattr(key, name))
    return str(getattr(key, attribute))


def quoted(path: Path) -> str:
    """A place, for people."""
    if not path:
        return "the top"
    return f"`{'/'.join(path)}`"
