"""Every step that an optimizer takes, recorded from inside jitted and pmapped code too.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import builtins
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
    """The receiver of each step."""

    def keep(self, step: Any, before: Any, gradients: Any, rate: Any, after: Any) -> None:
        """Take the facts of a step of an optimizer.

        They are its count, the parameters ahead of it, the gradients, the learning rate that it
        was given (NaN: none), and the new parameters.
        """

    def update(self, before: Any, after: Any) -> None:
        """Take the parameters around a call of `optax.apply_updates` outside of any train state."""

    def functional(self, step: Any, before: Any, after: Any) -> None:
        """Take the facts of a step that a definition takes without an optimizer.

        They are its count, the parameters ahead of it, and the new ones.
        """

    def meet(self, state: Any) -> None:
        """Take the traced legacy optimizer, definition or train state that is about to step."""

    def widen(self) -> None:
        """Note that an optimizer is created with float64 in the place of given float32."""

    def lose(self) -> None:
        """Note that an optimizer's state or hyperparameters do not follow from its steps so far."""


def whole(tree: Any) -> Any:
    """A tree as it is."""
    return tree


def averaged(state: Any, gradients: Any, new: Any = None) -> Any:
    """The gradients that are applied.

    A legacy optimizer that was replicated by its own method averages them itself.
    """
    del new
    axis: str | None = getattr(getattr(state, "optimizer_def", None), "axis_name", None)
    return gradients if axis is None else jax.lax.pmean(gradients, axis)  # type: ignore[no-untyped-call]


class _Settings(NamedTuple):
    """The arguments of `recording`: who receives the steps, and which parts of them."""

    keeper: Keeper
    start: Callable[[Any], Any]
    part: Callable[[Any], Any]
    beside: Callable[[Any, Any, Any], Any]
    rounding: bool
    wide: bool


@contextmanager
def recording(
    keeper: Keeper,
    legacy: bool,
    start: Callable[[Any], Any] = whole,
    part: Callable[[Any], Any] = whole,
    beside: Callable[[Any, Any, Any], Any] = averaged,
    rounding: bool = False,
    wide: bool = True,
) -> Iterator[None]:
    """Hand every step to a keeper while the context lasts.

    These are the steps of legacy optimizers, definitions and train states, and updates that are
    applied by hand. Legacy optimizers need the old Flax: that of an old Python, or that of
    `legacy_flax`.

    Args:
        keeper: receives the steps.
        legacy: whether this is the old side.
        start: takes the part that the keeper gets of the parameters ahead of a step, inside
            jitted code too.
        part: the same for the parameters after a step.
        beside: gives what the keeper gets in the place of the gradients, from the optimizer
            ahead of a step, its gradients and the optimizer after it.
        rounding: whether parameters that a legacy optimizer or definition returns are to be off
            by a unit in the last place, each time.
        wide: whether optimizers are created with parameters in float64 where they are given
            float32, as NumPy may have made them.
    """
    settings = _Settings(keeper, start, part, beside, legacy and rounding, wide)
    with ExitStack() as stack:
        optax = _optax()
        if optax is not None:
            stack.callback(setattr, optax, "apply_updates", optax.apply_updates)
            optax.apply_updates = _applied(optax.apply_updates, settings)
        _record_copies(stack, settings)
        _record_classes(stack, settings)
        if legacy:
            cls = _legacy_optimizer(stack, settings)
            name = "apply_gradient"
        else:
            cls = _train_state(stack, settings)
            name = "apply_gradients"
        stack.callback(setattr, cls, name, vars(cls)[name])
        setattr(cls, name, _recorded(vars(cls)[name], settings, settings.rounding))
        yield
        jax.effects_barrier()  # type: ignore[no-untyped-call]


def _legacy_optimizer(stack: ExitStack, settings: _Settings) -> Any:
    """The class of legacy optimizers; their definitions are recorded."""
    optim = importlib.import_module("flax.optim")
    _watch(optim.Optimizer, stack, settings.keeper)
    for definition in _with_subclasses(optim.OptimizerDef):
        _record_definition(definition, stack, settings)
    return optim.Optimizer


def _train_state(stack: ExitStack, settings: _Settings) -> Any:
    """The class of train states; its subclasses are recorded as they are defined."""
    cls: Any = importlib.import_module("flax.training.train_state").TrainState
    stack.callback(delattr, cls, "__init_subclass__")
    cls.__init_subclass__ = classmethod(_subclass_hook(settings, cls, "apply_gradients"))
    if settings.wide:
        stack.callback(setattr, cls, "create", vars(cls)["create"])
        cls.create = classmethod(_widened(vars(cls)["create"].__func__, settings.keeper))
    return cls


def _optax() -> Any:
    """The module optax. Beside an old JAX it may be missing, or fail to import."""
    try:
        return importlib.import_module("optax")
    except (ImportError, AttributeError, TypeError):
        return None


def _record_copies(stack: ExitStack, settings: _Settings) -> None:
    """Record optimizers of a copy of `flax.optim`, on either side, as soon as it is imported."""
    base: Any = struct.PyTreeNode
    before = vars(base)["__init_subclass__"]

    def hook(cls: Any, /, **arguments: Any) -> None:
        before.__get__(None, cls)(**arguments)
        if vars(cls).keys() >= COPIED:
            _watch(cls, stack, settings.keeper)
            stack.callback(setattr, cls, "apply_gradient", vars(cls)["apply_gradient"])
            cls.apply_gradient = _recorded(vars(cls)["apply_gradient"], settings, settings.rounding)

    stack.callback(setattr, base, "__init_subclass__", before)
    base.__init_subclass__ = classmethod(hook)


def _record_classes(stack: ExitStack, settings: _Settings) -> None:
    """Record the definitions among the classes that are defined from now on."""
    build = builtins.__build_class__

    def built(*args: Any, **kwargs: Any) -> Any:
        cls = build(*args, **kwargs)
        if hasattr(cls, "init_state"):
            _record_definition(cls, stack, settings)
        return cls

    stack.callback(setattr, builtins, "__build_class__", build)
    builtins.__build_class__ = built


def _record_definition(cls: Any, stack: ExitStack, settings: _Settings) -> None:
    """Record the steps that a definition takes by itself."""
    if "apply_gradient" in vars(cls):
        stack.callback(setattr, cls, "apply_gradient", cls.apply_gradient)
        cls.apply_gradient = _functional(cls.apply_gradient, settings)
    # A definition that is a gradient transformation, too: its `update` is a part of another step.
    if "update" in vars(cls):
        stack.callback(setattr, cls, "update", cls.update)
        cls.update = _within(cls.update)
    if "create" in vars(cls) and settings.wide:
        stack.callback(setattr, cls, "create", cls.create)
        cls.create = _widened(cls.create, settings.keeper)


def _widened(create: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
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
        first = [jax.tree_util.tree_map(widened, arg) for arg in args[:1]]
        # optimizer_def.create(target=params); TrainState.create(params=params, tx=tx)
        for name in {"params", "target"} & kwargs.keys():
            kwargs[name] = jax.tree_util.tree_map(widened, kwargs[name])
        return create(owner, *first, *args[1:], **kwargs)

    return created


def _with_subclasses(cls: Any) -> Iterator[Any]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)


def _watch(cls: Any, stack: ExitStack, keeper: Keeper) -> None:
    """Let a keeper know when the state of a legacy optimizer is replaced."""
    stack.callback(setattr, cls, "replace", vars(cls)["replace"])
    cls.replace = _watched(vars(cls)["replace"], keeper)


_inside = threading.local()
"""Its `value` is True while this thread is inside a step, or records none for another reason."""

COPIED = {"apply_gradient", "compute_gradient", "optimize"}
"""Methods by which the class of a legacy optimizer is recognised."""

_RECORDED_ARGUMENTS = {"grads", "learning_rate"}
"""The keyword arguments of a step that its keeper gets.

A legacy optimizer may be given other hyperparameters beside them.
"""


@contextmanager
def unrecorded() -> Iterator[None]:
    """Record no step that this thread takes while the context lasts."""
    before = getattr(_inside, "value", False)
    _inside.value = True
    try:
        yield
    finally:
        _inside.value = before


def _within(step: Callable[..., Any]) -> Callable[..., Any]:
    """A function in which nothing is recorded."""

    @wraps(step)
    def within(*args: Any, **kwargs: Any) -> Any:
        with unrecorded():
            return step(*args, **kwargs)

    return within


def _recorded(
    step: Callable[..., Any], settings: _Settings, rounding: bool = False
) -> Callable[..., Any]:
    """A method that takes a step, recorded."""

    @wraps(step)
    def recorded(state: Any, *args: Any, **kwargs: Any) -> Any:
        # super().apply_gradients(grads=grads): a step within a step is not another one.
        if getattr(_inside, "value", False):
            return step(state, *args, **kwargs)
        with unrecorded():
            new = step(state, *args, **kwargs)
            new = rounded(new) if rounding else new
        keeper = settings.keeper
        keeper.meet(state)
        # optimizer.apply_gradient(grads, beta=0.8)
        if kwargs.keys() - _RECORDED_ARGUMENTS:
            keeper.lose()
        gradients = args[0] if args else kwargs.get("grads")
        beside = settings.beside(state, gradients, new)
        rate = kwargs.get("learning_rate")
        rate = float("nan") if rate is None else rate
        before = settings.start(params(state))
        after = settings.part(params(new))
        jax.debug.callback(keeper.keep, count(state), before, beside, rate, after)
        return new

    return recorded


def _functional(step: Callable[..., Any], settings: _Settings) -> Callable[..., Any]:
    """The `apply_gradient` of a definition, recorded unless it is a part of another step."""
    steps_within = _within(step)

    @wraps(step)
    def recorded(definition: Any, hyper_params: Any, params: Any, state: Any, grads: Any) -> Any:
        if getattr(_inside, "value", False):
            return step(definition, hyper_params, params, state, grads)
        new, new_state = steps_within(definition, hyper_params, params, state, grads)
        new = rounded_leaves(new) if settings.rounding else new
        keeper = settings.keeper
        keeper.meet(definition)
        steps = _steps_taken(state)
        before = settings.start(params)
        after = settings.part(new)
        jax.debug.callback(keeper.functional, steps, before, after)
        return new, new_state

    return recorded


def _applied(apply_updates: Callable[..., Any], settings: _Settings) -> Callable[..., Any]:
    """`optax.apply_updates`, recorded unless a train state calls it."""

    @wraps(apply_updates)
    def applied(params: Any, updates: Any) -> Any:
        new = apply_updates(params, updates)
        if not getattr(_inside, "value", False):
            before = settings.start(params)
            after = settings.part(new)
            jax.debug.callback(settings.keeper.update, before, after)
        return new

    return applied


def _watched(replace: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    """The `replace` of a legacy optimizer, which a program may call to change the state."""

    @wraps(replace)
    def watched(optimizer: Any, **fields: Any) -> Any:
        # optimizer.replace(state=...), in the program itself and not within a step
        is_inside = getattr(_inside, "value", False)
        if "state" in fields and not is_inside:
            keeper.lose()
        return replace(optimizer, **fields)

    return watched


def _subclass_hook(settings: _Settings, base: Any, name: str) -> Callable[..., None]:
    """The `__init_subclass__` that records the step, called `name`, of each subclass of `base`."""

    def hook(cls: Any, **arguments: Any) -> None:
        super(base, cls).__init_subclass__(**arguments)
        if name in vars(cls):
            setattr(cls, name, _recorded(vars(cls)[name], settings))
        if settings.wide and isinstance(vars(cls).get("create"), classmethod):
            cls.create = classmethod(_widened(cls.create.__func__, settings.keeper))

    return hook


def rounded(optimizer: Any) -> Any:
    """A legacy optimizer with its parameters as `rounded_leaves` makes them."""
    return optimizer.replace(target=rounded_leaves(optimizer.target))


def rounded_leaves(params: Any) -> Any:
    """Parameters that are each off by a unit in the last place.

    Those of less than 32 bits stay: to them such a unit is more than rounding.
    """
    return jax.tree_util.tree_map(_rounded, params)


def _rounded(leaf: Any) -> Any:
    if jnp.result_type(leaf) not in (np.float64, np.float32):
        return leaf
    fixed = jax.lax.stop_gradient(leaf)
    return leaf + (jnp.nextafter(fixed, jnp.inf) - fixed)


def is_legacy(state: Any) -> bool:
    """Whether this is an optimizer or a definition of `flax.optim`, or of a copy of it.

    A definition that keeps its interface in the new code has an `update`, as a transformation of
    optax does.
    """
    if hasattr(state, "apply_gradient") and hasattr(state, "init_state"):
        return not hasattr(state, "update")
    return hasattr(state, "optimizer_def") and hasattr(state, "target")


def params(state: Any) -> Any:
    """The parameters of a legacy optimizer or of a train state."""
    return state.target if hasattr(state, "target") else state.params


def count(state: Any) -> Any:
    """The steps taken."""
    return _steps_taken(state.state) if hasattr(state, "target") else state.step


def _steps_taken(state: Any) -> Any:
    """The count in the state of a definition.

    A MultiOptimizer has one in the state of each of its optimizers, all with the same value.
    """
    return state.step if hasattr(state, "step") else state[0].step
