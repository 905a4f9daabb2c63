"""`jax` as old code expects it, with the tree functions that it lost."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import jax

REMOVED_FROM_JAX: Mapping[str, Callable[..., Any]] = {
    "tree_map": jax.tree_util.tree_map,
    "tree_multimap": jax.tree_util.tree_map,
    "tree_flatten": jax.tree_util.tree_flatten,
    "tree_unflatten": jax.tree_util.tree_unflatten,
    "tree_structure": jax.tree_util.tree_structure,
    "tree_leaves": jax.tree_util.tree_leaves,
}


class _OldJax(ModuleType):
    """`jax`, with the tree functions that were removed from it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jax, name)


@functools.cache
def _old_jax() -> ModuleType:
    module = _OldJax("jax")
    vars(module).update(REMOVED_FROM_JAX)
    return module


def give_removed_names(module: ModuleType) -> None:
    """Let the functions of a module find the names that were removed from `jax`, in any call."""
    if vars(module).get("jax") is jax:
        vars(module)["jax"] = _old_jax()
