"""The methods of optimizers and definitions, each with its recording around it.

A step may be taken inside jitted code, where its arrays are traced: a callback of JAX hands their
values to the keeper when the code runs.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from optim2optax.parity.recording.any_optimizer import (
    averaged,
    count,
    params,
    steps_taken,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNKNOWN = -1
"""The step of an update that is applied by hand."""

NO_RATE = float("nan")

RECORDED_ARGUMENTS = {"grads", "learning_rate"}
"""The keyword arguments of a step that its keeper gets.

A legacy optimizer may be given other hyperparameters beside them.
"""


class Keeper:
    """The receiver of each step; `start`, `part` and `beside` choose what it gets of one.

    With `rounding`, parameters that a legacy optimizer or definition returns are off by a unit in
    the last place, each time. If it is `wide`, optimizers are created with parameters in float64
    where they are given float32, as NumPy may have made them.
    """

    def __init__(self, rounding: bool = False, wide: bool = True) -> None:
        self.rounding = rounding
        self.wide = wide

    def start(self, params: Any) -> Any:
        """What is kept of the parameters ahead of a step, which may be traced."""
        return params

    def part(self, params: Any) -> Any:
        """What is kept of the parameters after a step."""
        return params

    def beside(self, state: Any, gradients: Any, new: Any) -> Any:
        """What is kept beside them, by the optimizer, its gradients and the optimizer after it."""
        del new
        return averaged(state, gradients)

    def keep(self, step: Any, before: Any, after: Any, beside: Any, rate: Any) -> None:
        """Take the facts of a step, once they are known.

        They are its count, what is kept of the parameters ahead of it and after it, what is kept
        beside them, and the learning rate that it was given (NaN: none). A step without an
        optimizer has nothing beside them: a definition takes it, or a call of
        `optax.apply_updates` outside of any train state, whose count is UNKNOWN.
        """
        raise NotImplementedError

    def call_back(
        self,
        step: Any,
        before: Any,
        after: Any,
        beside: Any = None,
        rate: Any = NO_RATE,
    ) -> None:
        """Let `keep` be called for parameters that may be traced, once they are known."""
        parts = self.start(before), self.part(after)
        jax.debug.callback(self.keep, step, *parts, beside, rate)

    def meet(self, state: Any) -> None:
        """Take the traced legacy optimizer, definition or train state that is about to step."""
        raise NotImplementedError

    def widen(self) -> None:
        """Note that an optimizer is created with float64 in the place of given float32."""

    def lose(self) -> None:
        """Note that an optimizer's state or hyperparameters do not follow from its steps so far."""


def recording_step(step: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    """A method that takes a step, recorded."""

    @wraps(step)
    def recorded(state: Any, *args: Any, **kwargs: Any) -> Any:
        # super().apply_gradients(grads=grads): a step within a step is not another one.
        if is_suspended():
            return step(state, *args, **kwargs)
        with unrecorded():
            new = step(state, *args, **kwargs)
            # Only legacy optimizers are rounded, and these have a target.
            if keeper.rounding:
                new = new.replace(target=rounded(new.target))
        keeper.meet(state)
        # optimizer.apply_gradient(grads, beta=0.8)
        if kwargs.keys() - RECORDED_ARGUMENTS:
            keeper.lose()
        gradients = args[0] if args else kwargs.get("grads")
        beside = keeper.beside(state, gradients, new)
        # A program may give None for "as it is defined".
        rate = kwargs.get("learning_rate")
        rate = NO_RATE if rate is None else rate
        keeper.call_back(count(state), params(state), params(new), beside, rate)
        return new

    return recorded


def recording_functional(
    step: Callable[..., Any], keeper: Keeper
) -> Callable[..., Any]:
    """The `apply_gradient` of a definition, recorded unless it is a part of another step."""

    @wraps(step)
    def recorded(
        definition: Any, hyper_params: Any, params: Any, state: Any, grads: Any
    ) -> Any:
        # A MultiOptimizer calls the definitions within it.
        if is_suspended():
            return step(definition, hyper_params, params, state, grads)
        with unrecorded():
            new, new_state = step(definition, hyper_params, params, state, grads)
        if keeper.rounding:
            new = rounded(new)
        keeper.meet(definition)
        keeper.call_back(steps_taken(state), params, new)
        return new, new_state

    return recorded


def recording_updates(
    apply_updates: Callable[..., Any], keeper: Keeper
) -> Callable[..., Any]:
    """`optax.apply_updates`, recorded unless a train state calls it."""

    @wraps(apply_updates)
    def applied(params: Any, updates: Any) -> Any:
        new = apply_updates(params, updates)
        if not is_suspended():
            keeper.call_back(UNKNOWN, params, new)
        return new

    return applied


def watching(replace: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    """The `replace` of a legacy optimizer, which a program may call to change the state."""

    @wraps(replace)
    def watched(optimizer: Any, **fields: Any) -> Any:
        # optimizer.replace(state=...), in the program itself and not within a step
        if "state" in fields and not is_suspended():
            keeper.lose()
        return replace(optimizer, **fields)

    return watched


def widening(create: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    """The `create` of a definition or a train state, with parameters in float64.

    They are the first argument of the one, and a keyword argument of the other.
    """

    def widened(leaf: Any) -> Any:
        if getattr(leaf, "dtype", None) != np.float32:
            return leaf
        keeper.widen()
        return leaf.astype(np.float64)

    @wraps(create)
    def created(owner: Any, *args: Any, **kwargs: Any) -> Any:
        # optimizer_def.create(params, focus)
        first = [jax.tree_util.tree_map(widened, arg) for arg in args[:1]]
        # optimizer_def.create(target=params); TrainState.create(params=params, tx=tx)
        for name in {"params", "target"} & kwargs.keys():
            kwargs[name] = jax.tree_util.tree_map(widened, kwargs[name])
        return create(owner, *first, *args[1:], **kwargs)

    return created


_thread = threading.local()


def is_suspended() -> bool:
    """Whether this thread is inside a step, or records none for another reason."""
    return getattr(_thread, "is_suspended", False)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Record no step that this thread takes while the context lasts."""
    before = is_suspended()
    _thread.is_suspended = True
    try:
        yield
    finally:
        _thread.is_suspended = before


def rounded(params: Any) -> Any:
    """Parameters that are each off by a unit in the last place, as if the step rounded otherwise.

    Those of less than 32 bits stay: to them such a unit is more than rounding.
    """
    return jax.tree_util.tree_map(_rounded, params)


def _rounded(leaf: Any) -> Any:
    if jnp.result_type(leaf) not in (np.float64, np.float32):
        return leaf
    fixed = jax.lax.stop_gradient(leaf)
    return leaf + (jnp.nextafter(fixed, jnp.inf) - fixed)
