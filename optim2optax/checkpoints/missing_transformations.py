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
        # a named tuple is not looked into: optax.GradientTransformation is one itself
        if type(node) not in (dict, tuple, list):
            return node
        rest: list[tuple[Any, Any]] = []
        for key, value in node.items() if type(node) is dict else enumerate(node):
            # (params, opt_state, tx)
            if _is_transformation(value):
                found[path] = value
            else:
                rest.append((key, value))
        if type(node) is dict:
            return {key: without(value, (*path, str(key))) for key, value in rest}
        # what is behind a transformation moves up
        children = [value for _, value in rest]
        return type(node)(
            without(value, (*path, str(number)))
            for number, value in enumerate(children)
        )

    return without(state, ()), found


def _is_transformation(value: Any) -> bool:
    init = getattr(value, "init", None)
    update = getattr(value, "update", None)
    return callable(init) and callable(update)
