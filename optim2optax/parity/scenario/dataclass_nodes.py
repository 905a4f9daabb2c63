"""Dataclasses as pytrees that are equal only if their classes are the same.

To JAX (seen in 0.10) two pytrees of dataclasses are equal if they have as many fields, whatever
their classes. Where one process loads a file often, or the old and the new file of one class, a
function that was traced with one of the classes then may give its objects for those of another:
optax has such functions, and about one load in a hundred meets one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from optim2optax.legacy import replaced


@contextmanager
def told_apart() -> Iterator[None]:
    """Let new dataclasses of JAX or Flax be pytrees that equal no others, within the context."""
    with replaced(vars(jax.tree_util), {"register_dataclass": _register}):
        yield


def _register(
    nodetype: type,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type:
    """Do as `jax.tree_util.register_dataclass`, by functions that flatten and unflatten."""
    if data_fields is None or meta_fields is None:
        data_fields, meta_fields = _fields(nodetype, drop_fields)
    data = tuple(data_fields)
    meta = tuple(meta_fields)

    def flatten(node: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        leaves: list[tuple[Any, Any]] = []
        for name in data:
            key = jax.tree_util.GetAttrKey(name)
            leaves.append((key, getattr(node, name)))
        values = tuple(getattr(node, name) for name in meta)
        return leaves, values

    def unflatten(values: tuple[Any, ...], leaves: Iterable[Any]) -> Any:
        arguments: dict[str, Any] = {}
        arguments.update(zip(data, leaves, strict=True))
        arguments.update(zip(meta, values, strict=True))
        return nodetype(**arguments)

    jax.tree_util.register_pytree_with_keys(nodetype, flatten, unflatten)
    return nodetype


def _fields(nodetype: type, drop_fields: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of the fields of a dataclass that hold data, and of those that do not."""
    data: list[str] = []
    meta: list[str] = []
    for field in dataclasses.fields(nodetype):
        if not field.init or field.name in drop_fields:
            continue
        # apply_fn: Callable = field(metadata={"static": True})
        is_static = field.metadata.get("static", False)
        if is_static:
            meta.append(field.name)
        else:
            data.append(field.name)
    return data, meta
