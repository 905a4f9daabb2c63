"""The gradient transformations in a program's state, which no checkpoint has."""

from __future__ import annotations

from typing import Any

from optim2optax.checkpoints.state_dict_places import Path


def split(state: Any) -> tuple[Any, dict[Path, Any]]:
    """A state without its transformations, and these by the places of their containers.

    Containers are tuples, lists and dicts.
    """
    found: dict[Path, Any] = {}

    def without(node: Any, path: Path) -> Any:
        # (params, opt_state, tx)
        items = _items(node)
        for _, value in items:
            if _is_transformation(value):
                found[path] = value
        rest = [(key, value) for key, value in items if not _is_transformation(value)]
        if type(node) is dict:
            return {key: without(value, (*path, str(key))) for key, value in rest}
        if type(node) in (tuple, list):
            # what is behind a transformation moves up
            children = [
                without(value, (*path, str(number)))
                for number, (_, value) in enumerate(rest)
            ]
            return type(node)(children)
        return node

    return without(state, ()), found


def _items(node: Any) -> list[tuple[Any, Any]]:
    if type(node) is dict:
        return [*node.items()]
    # a named tuple is not looked into: optax.GradientTransformation is one itself
    if type(node) in (tuple, list):
        return [*enumerate(node)]
    return []


def _is_transformation(value: Any) -> bool:
    init = getattr(value, "init", None)
    update = getattr(value, "update", None)
    return callable(init) and callable(update)
