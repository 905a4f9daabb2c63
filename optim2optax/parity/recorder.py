"""Every step that an optimizer takes, recorded from inside jitted and pmapped code too.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import importlib
import threading
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Keeper(Protocol):
    """What is told of each step."""

    def keep(self, step: Any, before: Any, gradients: Any, rate: Any, after: Any) -> None:
        """Take the count of a step, the parameters ahead of it, the gradients, the rate given (NaN: none), the new parameters."""

    def update(self, before: Any, after: Any) -> None:
        """Take the parameters ahead of and after a call of `optax.apply_updates` outside of any train state."""

    def meet(self, state: Any) -> None:
        """Take a legacy optimizer or train state that is about to step, as it is traced: its arrays have shapes alone."""

    def lose(self) -> None:
        """Hear that an optimizer's state or hyperparameters are not those that its steps so far tell."""


def whole(tree: Any) -> Any:
    """A tree as it is."""
    return tree


def averaged(state: Any, gradients: Any, new: Any = None) -> Any:
    """The gradients that are applied: a legacy optimizer that was replicated by its own method averages them itself."""
    del new
    axis: str | None = getattr(getattr(state, "optimizer_def", None), "axis_name", None)
    return gradients if axis is None else jax.lax.pmean(gradients, axis)  # type: ignore[no-untyped-call]


class _Told(NamedTuple):
    """Who is told of steps, and what of them."""

    keeper: Keeper
    part: Callable[[Any], Any]
    beside: Callable[[Any, Any, Any], Any]


@contextmanager
def recording(
    keeper: Keeper,
    legacy: bool,
    part: Callable[[Any], Any] = whole,
    beside: Callable[[Any, Any, Any], Any] = averaged,
    rounding: bool = False,
) -> Iterator[None]:
    """Let a keeper be told of every step of a legacy optimizer or of a train state, and of updates that are applied by hand.

    The old Flax has to be there for legacy optimizers: that of an old Python, or that of `legacy_flax`.

    `part` takes of parameters what the keeper is told, inside jitted code too, and `beside` what it is told in the place of the
    gradients, of the optimizer ahead of a step, its gradients and the optimizer after it. With `rounding`, what a legacy
    optimizer makes of its parameters is each time off by a unit in the last place.
    """
    told = _Told(keeper, part, beside)
    with ExitStack() as stack:
        optax = _optax()
        if optax is not None:
            stack.callback(setattr, optax, "apply_updates", optax.apply_updates)
            optax.apply_updates = _applied(optax.apply_updates, told)
        _record_copies(stack, told, rounding)
        if legacy:
            cls: Any = importlib.import_module("flax.optim").Optimizer
            name = "apply_gradient"
            _watch(cls, stack, keeper)
        else:
            cls, name = importlib.import_module("flax.training.train_state").TrainState, "apply_gradients"
            stack.callback(delattr, cls, "__init_subclass__")
            cls.__init_subclass__ = classmethod(_subclass_hook(told, cls, name))
        stack.callback(setattr, cls, name, vars(cls)[name])
        setattr(cls, name, _recorded(vars(cls)[name], told, legacy and rounding))
        yield
        jax.effects_barrier()  # type: ignore[no-untyped-call]


def _optax() -> Any:
    """The module optax. An environment with an old JAX may have none, or one that it cannot import."""
    try:
        return importlib.import_module("optax")
    except (ImportError, AttributeError, TypeError):
        return None


def _record_copies(stack: ExitStack, told: _Told, rounding: bool) -> None:
    """Record the optimizers of a copy of `flax.optim` that either side may have, as soon as it is imported."""
    base: Any = struct.PyTreeNode
    before = vars(base)["__init_subclass__"]

    def hook(cls: Any, /, **arguments: Any) -> None:
        before.__get__(None, cls)(**arguments)
        if vars(cls).keys() >= COPIED:
            _watch(cls, stack, told.keeper)
            stack.callback(setattr, cls, "apply_gradient", vars(cls)["apply_gradient"])
            cls.apply_gradient = _recorded(vars(cls)["apply_gradient"], told, rounding)

    stack.callback(setattr, base, "__init_subclass__", before)
    base.__init_subclass__ = classmethod(hook)


def _watch(cls: Any, stack: ExitStack, keeper: Keeper) -> None:
    """Let a keeper know when the state of a legacy optimizer is exchanged."""
    stack.callback(setattr, cls, "replace", vars(cls)["replace"])
    cls.replace = _watched(vars(cls)["replace"], keeper)


_inside = threading.local()

COPIED = {"apply_gradient", "compute_gradient", "optimize"}
"""Methods by which the class of a legacy optimizer is told."""

TOLD = {"grads", "learning_rate"}
"""What a step is given by name and its keeper is told. A legacy optimizer may be given other hyperparameters beside that."""


@contextmanager
def unrecorded() -> Iterator[None]:
    """Record no step that this thread takes, for a while."""
    _inside.value = True
    try:
        yield
    finally:
        _inside.value = False


def _recorded(step: Callable[..., Any], told: _Told, rounding: bool = False) -> Callable[..., Any]:
    """A method that takes a step, recorded; a step within a step, such as the one of a base class, is not another one."""

    @wraps(step)
    def recorded(state: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "value", False):
            return step(state, *args, **kwargs)
        with unrecorded():
            new = step(state, *args, **kwargs)
            new = rounded(new) if rounding else new
        keeper, part = told.keeper, told.part
        keeper.meet(state)
        if kwargs.keys() - TOLD:
            keeper.lose()
        beside = told.beside(state, args[0] if args else kwargs.get("grads"), new)
        rate = kwargs.get("learning_rate")
        rate = float("nan") if rate is None else rate
        jax.debug.callback(keeper.keep, count(state), part(params(state)), beside, rate, part(params(new)))
        return new

    return recorded


def _applied(apply_updates: Callable[..., Any], told: _Told) -> Callable[..., Any]:
    """`optax.apply_updates`, recorded unless a train state calls it."""

    @wraps(apply_updates)
    def applied(params: Any, updates: Any) -> Any:
        new = apply_updates(params, updates)
        if not getattr(_inside, "value", False):
            jax.debug.callback(told.keeper.update, told.part(params), told.part(new))
        return new

    return applied


def _watched(replace: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    """The `replace` of a legacy optimizer; by the caller's own hand, it may exchange the state."""

    @wraps(replace)
    def watched(optimizer: Any, **fields: Any) -> Any:
        if "state" in fields and not getattr(_inside, "value", False):
            keeper.lose()
        return replace(optimizer, **fields)

    return watched


def _subclass_hook(told: _Told, base: Any, name: str) -> Callable[..., None]:
    def hook(cls: Any, **arguments: Any) -> None:
        super(base, cls).__init_subclass__(**arguments)
        if name in vars(cls):
            setattr(cls, name, _recorded(vars(cls)[name], told))

    return hook


def rounded(optimizer: Any) -> Any:
    """A legacy optimizer whose parameters are each off by a unit in the last place, if they have the precision of the run."""
    return optimizer.replace(target=jax.tree_util.tree_map(_rounded, optimizer.target))


def _rounded(leaf: Any) -> Any:
    if jnp.result_type(leaf) != jax.dtypes.canonicalize_dtype(np.float64):
        return leaf
    fixed = jax.lax.stop_gradient(leaf)
    return leaf + (jnp.nextafter(fixed, jnp.inf) - fixed)


def is_legacy_optimizer(state: Any) -> bool:
    """Whether this is an optimizer of `flax.optim`, or of a copy of it."""
    return hasattr(state, "optimizer_def") and hasattr(state, "target")


def params(state: Any) -> Any:
    """The parameters of a legacy optimizer or of a train state."""
    return state.target if hasattr(state, "target") else state.params


def count(state: Any) -> Any:
    """The steps taken. A MultiOptimizer has a count in the state of each of its optimizers, all alike."""
    if not hasattr(state, "target"):
        return state.step
    inner = state.state
    return inner.step if hasattr(inner, "step") else inner[0].step
