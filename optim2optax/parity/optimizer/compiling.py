"""Compiling functions that run once or twice.

It is to be fast, rather than to give fast code, and is not done again for other values of the
same shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import jax

from optim2optax.parity.judging.movement import PyTree
from optim2optax.parity.optimizer.hoisting import hoisted

FAST: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_cpu_parallel_codegen_split_count": "1",
}
"""On CPU, compiling takes far longer than running, so that optimizing the code is wasted.

To split a small function for several threads takes longer than it saves.
"""

EXACT = {**FAST, "xla_cpu_use_fusion_emitters": True}
"""Options that distinguish identical from equivalent, whatever XLA_FLAGS say."""

QUICK = {**FAST, "xla_cpu_use_fusion_emitters": False}
"""A third of the time, but the same operations may round otherwise on two sides.

That distinguishes neither identical from equivalent, nor finds what overflows in float32.
"""

KEPT = 4
"""The number of functions that are kept by the objects that they are made of.

It suffices for one optimizer in two precisions, with and without learning rates.
"""

EXECUTABLES = 64
"""The number of executables that are kept by the forms of their functions."""

SHARED_FROM = 0.1
"""The seconds of compiling from which on an executable is shared with other processes."""

_kept: list[tuple[tuple[Any, ...], Any, Callable[..., PyTree]]] = []
_executables: dict[Hashable, Any] = {}


def share_executables(folder: Path) -> None:
    """Let processes of one run share executables. A cache that the user has chosen stays."""
    config: Any = jax.config
    if config.jax_compilation_cache_dir is None:
        config.update("jax_compilation_cache_dir", str(folder))
        # By default, JAX shares only what takes a second or more to compile.
        config.update("jax_persistent_cache_min_compile_time_secs", SHARED_FROM)
        config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def compiled_once(
    key: tuple[Any, ...],
    quick: bool,
    function: Callable[..., PyTree],
    *arguments: PyTree,
) -> Callable[..., PyTree]:
    """A function, compiled for arguments of these shapes and types.

    Functions that differ in numbers alone share one executable.

    Args:
        key: the objects that identify the function; the same objects mean the same function.
        quick: whether rounding does not matter.
        function: what is compiled.
        arguments: trees of arrays; only their shapes and types matter.
    """
    types = jax.tree_util.tree_map(_type, arguments)
    for known, shapes, compiled in _kept:
        # The same objects, which need not be comparable.
        is_same = len(known) == len(key) and all(map(operator.is_, known, key))
        if is_same and shapes == types:
            return compiled
    compiled = _compiled_form(quick, function, *arguments)
    _kept.append((key, types, compiled))
    del _kept[:-KEPT]
    return compiled


def _type(leaf: Any) -> tuple[Any, Any]:
    return jax.numpy.shape(leaf), jax.numpy.result_type(leaf)


def _compiled_form(
    quick: bool, function: Callable[..., PyTree], *arguments: PyTree
) -> Callable[..., PyTree]:
    """The executable of a function's form, with the numbers of the function."""
    traced = hoisted(function, *arguments)
    key = None if traced.form is None else (traced.form, quick)
    executable = _executables.get(key)
    if executable is None:
        leaves = jax.tree_util.tree_leaves(arguments)
        lowered = jax.jit(traced.function).lower(
            traced.numbers, traced.constants, leaves
        )
        executable = _compiled(lowered, quick)
        if key is not None:
            _keep(key, executable)

    def compiled(*arguments: PyTree) -> PyTree:
        leaves = jax.tree_util.tree_leaves(arguments)
        results = executable(traced.numbers, traced.constants, leaves)
        return jax.tree_util.tree_unflatten(traced.results, results)

    return compiled


def _keep(key: Hashable, executable: Any) -> None:
    """Keep an executable, and drop the oldest one of too many."""
    _executables[key] = executable
    if len(_executables) > EXECUTABLES:
        oldest = next(iter(_executables))
        del _executables[oldest]


def _compiled(lowered: Any, quick: bool) -> Any:
    # The options are those of the CPU.
    if jax.default_backend() != "cpu":
        return lowered.compile()
    try:
        return lowered.compile(QUICK if quick else EXACT)
    except jax.errors.JaxRuntimeError:
        # A version of XLA may not have the option.
        return lowered.compile(FAST)
