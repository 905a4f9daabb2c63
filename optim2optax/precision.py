"""The precision in which both sides compute for a verdict."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen

from optim2optax.legacy import replaced


@contextmanager
def parameters_in_float64() -> Iterator[None]:
    """Let layers of Flax make float64 parameters where they would make float32 ones by default."""

    def widen(
        method: Any, args: Any, kwargs: Any, context: linen.module.InterceptorContext
    ) -> Any:
        if getattr(context.module, "param_dtype", None) == np.float32:
            # nn.Dense(10): modules of Flax are frozen.
            object.__setattr__(context.module, "param_dtype", jnp.float64)
        return method(*args, **kwargs)

    with linen.intercept_methods(widen):
        yield


@contextmanager
def precise(wide: bool = True) -> Iterator[None]:
    """Let JAX compute in float64, if `wide`, else in float32, while the context lasts.

    Matrix products are at highest precision. In float64, `jnp.float32` means float64 too:
    Adafactor, old and new, and much user code ask for float32 by that name, and its rounding would
    hide, or feign, a difference between the functions themselves. So does `jnp.int32` mean int64,
    since JAX divides int32 in float32: a schedule of an int32 step would round.
    """
    # jnp.asarray(rate, jnp.float32)
    renamed = {"float32": jnp.float64, "int32": jnp.int64} if wide else {}
    with (
        _enable_x64(wide),
        jax.default_matmul_precision("highest"),
        _accumulated(wide),
        replaced(vars(jnp), renamed),
    ):
        yield


# As it is outside of `precise`, which changes what `jnp.float32` means.
_FLOAT32 = jnp.float32


@contextmanager
def _accumulated(wide: bool) -> Iterator[None]:
    """Let `optax.MultiSteps` accumulate in float64, if `wide`."""
    function: Any = optax.MultiSteps.__init__
    # Its float32 is the default of a parameter, which was evaluated when it was defined.
    before = function.__defaults__
    if wide:
        function.__defaults__ = tuple(
            jnp.float64 if value is _FLOAT32 else value for value in before
        )
    try:
        yield
    finally:
        function.__defaults__ = before


def _enable_x64(wide: bool) -> AbstractContextManager[Any]:
    # Until 0.8 JAX had it among its experiments.
    home: Any = jax
    if "enable_x64" not in vars(jax):
        home = importlib.import_module("jax.experimental")
    context: AbstractContextManager[Any] = home.enable_x64(wide)
    return context


@contextmanager
def double_everywhere() -> Iterator[None]:
    """Let float64 be in every thread while the context lasts.

    Callbacks come in threads of their own, to which `precise` does not reach.
    """
    config: Any = jax.config
    before = config.read("jax_enable_x64")
    config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        config.update("jax_enable_x64", before)
