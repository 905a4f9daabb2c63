"""The methods of optimizers and definitions, each with its recording around it.

A step may be taken inside jitted code, where its arrays are traced: a callback of JAX hands their
values to the keeper when the code runs.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from optim2optax.parity.recording.optimizers import count, params, steps_taken
from optim2optax.parity.recording.rounding import rounded, rounded_leaves
from optim2optax.parity.recording.suspending import is_suspended, suspending, unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from optim2optax.parity.recording.keeper import Keeper, Settings

NO_RATE = float("nan")

RECORDED_ARGUMENTS = {"grads", "learning_rate"}
"""The keyword arguments of a step that its keeper gets.

A legacy optimizer may be given other hyperparameters beside them.
"""


def recording_step(
    step: Callable[..., Any], settings: Settings, rounding: bool = False
) -> Callable[..., Any]:
    """A method that takes a step, recorded."""

    @wraps(step)
    def recorded(state: Any, *args: Any, **kwargs: Any) -> Any:
        # super().apply_gradients(grads=grads): a step within a step is not another one.
        if is_suspended():
            return step(state, *args, **kwargs)
        with unrecorded():
            new = step(state, *args, **kwargs)
            if rounding:
                new = rounded(new)
        keeper = settings.keeper
        keeper.meet(state)
        # optimizer.apply_gradient(grads, beta=0.8)
        if kwargs.keys() - RECORDED_ARGUMENTS:
            keeper.lose()
        gradients = args[0] if args else kwargs.get("grads")
        beside = settings.beside(state, gradients, new)
        # A program may give None for "as it is defined".
        rate = kwargs.get("learning_rate")
        rate = NO_RATE if rate is None else rate
        before = settings.start(params(state))
        after = settings.part(params(new))
        jax.debug.callback(keeper.keep, count(state), before, beside, rate, after)
        return new

    return recorded


def recording_functional(
    step: Callable[..., Any], settings: Settings
) -> Callable[..., Any]:
    """The `apply_gradient` of a definition, recorded unless it is a part of another step."""
    steps_within = suspending(step)

    @wraps(step)
    def recorded(
        definition: Any, hyper_params: Any, params: Any, state: Any, grads: Any
    ) -> Any:
        # A MultiOptimizer calls the definitions within it.
        if is_suspended():
            return step(definition, hyper_params, params, state, grads)
        new, new_state = steps_within(definition, hyper_params, params, state, grads)
        if settings.rounding:
            new = rounded_leaves(new)
        keeper = settings.keeper
        keeper.meet(definition)
        before = settings.start(params)
        after = settings.part(new)
        jax.debug.callback(keeper.functional, steps_taken(state), before, after)
        return new, new_state

    return recorded


def recording_updates(
    apply_updates: Callable[..., Any], settings: Settings
) -> Callable[..., Any]:
    """`optax.apply_updates`, recorded unless a train state calls it."""

    @wraps(apply_updates)
    def applied(params: Any, updates: Any) -> Any:
        new = apply_updates(params, updates)
        if not is_suspended():
            before = settings.start(params)
            after = settings.part(new)
            jax.debug.callback(settings.keeper.update, before, after)
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
