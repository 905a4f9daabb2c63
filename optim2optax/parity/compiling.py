"""Compiling what runs once or twice: fast rather than to fast code, and not again for other values of the same shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

FAST: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}
"""On CPU, compiling takes far longer than running, so that optimizing what is compiled is wasted."""

EXACT = {**FAST, "xla_cpu_use_fusion_emitters": True}
"""What tells identical from equivalent, whatever XLA_FLAGS say."""

QUICK = {**FAST, "xla_cpu_use_fusion_emitters": False}
"""A third of the time, but the same operations may round otherwise on two sides: that cannot tell identical from equivalent."""

KEPT = 4
"""How many executables are kept: one optimizer in two precisions, with and without learning rates."""

_kept: list[tuple[tuple[Any, ...], Any, Any]] = []


def compiled_once(key: tuple[Any, ...], quick: bool, function: Callable[..., Any], *arguments: Any) -> Any:
    """A function, compiled for arguments of these shapes and types.

    Args:
        key: the objects that tell it from others; the same objects mean the same function.
        quick: whether rounding does not matter.
        function: what is compiled.
        arguments: trees of arrays; only their shapes and types matter.
    """
    types = jax.tree_util.tree_map(lambda leaf: (jax.numpy.shape(leaf), jax.numpy.result_type(leaf)), arguments)
    for known, shapes, executable in _kept:
        if (
            len(known) == len(key)
            and all(one is other for one, other in zip(known, key, strict=True))
            and shapes == types
        ):
            return executable
    executable = _compiled(jax.jit(function).lower(*arguments), quick)
    _kept.append((key, types, executable))
    del _kept[:-KEPT]
    return executable


def _compiled(lowered: Any, quick: bool) -> Any:
    if jax.default_backend() != "cpu":
        return lowered.compile()
    try:
        return lowered.compile(QUICK if quick else EXACT)
    except jax.errors.JaxRuntimeError:  # a version of XLA that does not have the option
        return lowered.compile(FAST)
