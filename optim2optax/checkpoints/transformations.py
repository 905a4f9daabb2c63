"""The transformations that a program hands on beside its parameters, which no checkpoint has."""

from __future__ import annotations

from typing import Any

from optim2optax.checkpoints.places import Path


def split(state: Any) -> tuple[Any, dict[Path, Any]]:
    """A state without its transformations, and these by the places of the tuples, lists and dicts that had them."""
    found: dict[Path, Any] = {}

    def without(node: Any, path: Path) -> Any:
        items = _items(node)
        for _, value in items:
            if _is_one(value):
                found[path] = value
        rest = [(key, value) for key, value in items if not _is_one(value)]
        if type(node) is dict:
            return {key: without(value, (*path, str(key))) for key, value in rest}
        if type(node) in (tuple, list):
            return type(node)(
                without(value, (*path, str(number))) for number, (_, value) in enumerate(rest)
            )
        return node

    return without(state, ()), found


def _items(node: Any) -> list[tuple[Any, Any]]:
    if type(node) is dict:
        return [*node.items()]
    return [*enumerate(node)] if type(node) in (tuple, list) else []


def _is_one(value: Any) -> bool:
    return callable(getattr(value, "init", None)) and callable(getattr(value, "update", None))
