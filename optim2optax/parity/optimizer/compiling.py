"""Compiling functions that run once or twice.

It is to be fast, rather than to give fast code, and is not done again for other values of the
same shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax

from optim2optax.parity.judging.movement import PyTree

FAST: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_cpu_parallel_codegen_split_count": "1",
}
"""On CPU, compiling takes far longer than running, so that optimizing the code is wasted.

To split a small function for several threads takes longer than it saves.
"""

EXACT = {**FAST, "xla_cpu_use_fusion_emitters": True}
"""Options that distinguish identical from equivalent, whatever XLA_FLAGS say."""

KEPT = 4
"""The number of functions that are kept by the objects that they are made of.

It suffices for one optimizer in two precisions, with and without learning rates.
"""


_kept: list[tuple[tuple[Any, ...], Any, Callable[..., PyTree]]] = []


def compiled_once(
    key: tuple[Any, ...],
    function: Callable[..., PyTree],
    *arguments: PyTree,
) -> Callable[..., PyTree]:
    """A function, compiled for arguments of these shapes and types.

    Args:
        key: the objects that identify the function; the same objects mean the same function.
        function: what is compiled.
        arguments: trees of arrays; only their shapes and types matter.
    """
    types = jax.tree_util.tree_map(_type, arguments)
    for known, shapes, earlier in _kept:
        # The same objects, which need not be comparable.
        is_same = len(known) == len(key) and all(map(operator.is_, known, key))
        if is_same and shapes == types:
            return earlier
    compiled: Callable[..., PyTree] = _compiled(jax.jit(function).lower(*arguments))
    _kept.append((key, types, compiled))
    del _kept[:-KEPT]
    return compiled


def _type(leaf: Any) -> tuple[Any, Any]:
    return jax.numpy.shape(leaf), jax.numpy.result_type(leaf)


def _compiled(lowered: Any) -> Any:
    # The options are those of the CPU.
    if jax.default_backend() != "cpu":
        return lowered.compile()
    try:
        return lowered.compile(EXACT)
    except jax.errors.JaxRuntimeError:
        # A version of XLA may not have the option.
        return lowered.compile(FAST)
