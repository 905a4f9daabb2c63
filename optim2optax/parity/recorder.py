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
    """What is told of each step."""

    def keep(self, step: Any, before: Any, gradients: Any, rate: Any, after: Any) -> None:
        """Take the count of a step, the parameters ahead of it, the gradients, the rate given (NaN: none), the new parameters."""

    def update(self, before: Any, after: Any) -> None:
        """Take the parameters ahead of and after a call of `optax.apply_updates` outside of any train state."""

    def functional(self, step: Any, before: Any, after: Any) -> None:
        """Take the count of a step that a definition takes without an optimizer, the parameters ahead of it, and the new ones."""

    def meet(self, state: Any) -> None:
        """Take what is about to step, as it is traced: a legacy optimizer or definition, or a train state."""

    def widen(self) -> None:
        """Hear that an optimizer is created with parameters in float64 that it was given in float32."""

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
    """Let a keeper be told of every step of a legacy optimizer, a definition or a train state, and of updates applied by hand.

    The old Flax has to be there for legacy optimizers: that of an old Python, or that of `legacy_flax`.

    `start` and `part` take of parameters ahead of a step and after it what the keeper is told, inside jitted code too, and
    `beside` what it is told in the place of the gradients, of the optimizer ahead of a step, its gradients and the optimizer
    after it. With `rounding`, what a legacy
    optimizer or definition makes of parameters is each time off by a unit in the last place. If `wide`, optimizers are created
    with parameters in float64 where they are given float32, as NumPy may have made them.
    """
    told = _Told(keeper, start, part, beside, legacy and rounding, wide)
    with ExitStack() as stack:
        optax = _optax()
        if optax is not None:
            stack.callback(setattr, optax, "apply_updates", optax.apply_updates)
            optax.apply_updates = _applied(optax.apply_updates, told)
        _record_copies(stack, told)
        _record_classes(stack, told)
        if legacy:
            optim = importlib.import_module("flax.optim")
            cls: Any = optim.Optimizer
            name = "apply_gradient"
            _watch(cls, stack, keeper)
            for definition in _with_subclasses(optim.OptimizerDef):
                _record_definition(definition, stack, told)
        else:
            cls, name = (
                importlib.import_module("flax.training.train_state").TrainState,
                "apply_gradients",
            )
            stack.callback(delattr, cls, "__init_subclass__")
            cls.__init_subclass__ = classmethod(_subclass_hook(told, cls, name))
            if wide:
                stack.callback(setattr, cls, "create", vars(cls)["create"])
                cls.create = classmethod(_widened(vars(cls)["create"].__func__, keeper))
        stack.callback(setattr, cls, name, vars(cls)[name])
        setattr(cls, name, _recorded(vars(cls)[name], told, told.rounding))
        yield
        jax.effects_barrier()  # type: ignore[no-untyped-call]


def _optax() -> Any:
    """The module optax. An environment with an old JAX may have none, or one that it cannot import."""
    try:
        return importlib.import_module("optax")
    except (ImportError, AttributeError, TypeError):
        return None


def _record_copies(stack: ExitStack, told: _Told) -> None:
    """Record the optimizers of a copy of `flax.optim` that either side may have, as soon as it is imported."""
    base: Any = struct.PyTreeNode
    before = vars(base)["__init_subclass__"]

    def hook(cls: Any, /, **arguments: Any) -> None:
        before.__get__(None, cls)(**arguments)
        if vars(cls).keys() >= COPIED:
            _watch(cls, stack, told.keeper)
            stack.callback(setattr, cls, "apply_gradient", vars(cls)["apply_gradient"])
            cls.apply_gradient = _recorded(vars(cls)["apply_gradient"], told, told.rounding)

    stack.callback(setattr, base, "__init_subclass__", before)
    base.__init_subclass__ = classmethod(hook)


def _record_classes(stack: ExitStack, told: _Told) -> None:
    """Record the definitions among the classes that are defined from now on."""
    build = builtins.__build_class__

    def built(*args: Any, **kwargs: Any) -> Any:
        cls = build(*args, **kwargs)
        if hasattr(cls, "init_state"):
            _record_definition(cls, stack, told)
        return cls

    stack.callback(setattr, builtins, "__build_class__", build)
    builtins.__build_class__ = built


def _record_definition(cls: Any, stack: ExitStack, told: _Told) -> None:
    """Record what a definition does by itself. One that is a transformation, too, steps in its `update` for something else."""
    if "apply_gradient" in vars(cls):
        stack.callback(setattr, cls, "apply_gradient", cls.apply_gradient)
        cls.apply_gradient = _functional(cls.apply_gradient, told)
    if "update" in vars(cls):
        stack.callback(setattr, cls, "update", cls.update)
        cls.update = _within(cls.update)
    if "create" in vars(cls) and told.wide:
        stack.callback(setattr, cls, "create", cls.create)
        cls.create = _widened(cls.create, told.keeper)


def _widened(create: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    """The `create` of a definition, which has parameters for its first argument, or of a train state, with them as a keyword."""

    def widened(leaf: Any) -> Any:
        if getattr(leaf, "dtype", None) != np.float32:
            return leaf
        keeper.widen()
        return leaf.astype(np.float64)

    @wraps(create)
    def created(owner: Any, *args: Any, **kwargs: Any) -> Any:
        first = [jax.tree_util.tree_map(widened, arg) for arg in args[:1]]
        named = {
            name: jax.tree_util.tree_map(widened, value) if name in ("params", "target") else value
            for name, value in kwargs.items()
        }
        return create(owner, *first, *args[1:], **named)

    return created


def _with_subclasses(cls: Any) -> Iterator[Any]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)


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


def _recorded(step: Callable[..., Any], told: _Told, rounding: bool = False) -> Callable[..., Any]:
    """A method that takes a step, recorded; a step within a step, such as the one of a base class, is not another one."""

    @wraps(step)
    def recorded(state: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "value", False):
            return step(state, *args, **kwargs)
        with unrecorded():
            new = step(state, *args, **kwargs)
            new = rounded(new) if rounding else new
        keeper = told.keeper
        keeper.meet(state)
        if kwargs.keys() - TOLD:
            keeper.lose()
        beside = told.beside(state, args[0] if args else kwargs.get("grads"), new)
        rate = kwargs.get("learning_rate")
        rate = float("nan") if rate is None else rate
        before, after = told.start(params(state)), told.part(params(new))
        jax.debug.callback(keeper.keep, count(state), before, beside, rate, after)
        return new

    return recorded


def _functional(step: Callable[..., Any], told: _Told) -> Callable[..., Any]:
    """The `apply_gradient` of a definition, recorded unless it is a part of another step."""
    steps_within = _within(step)

    @wraps(step)
    def recorded(definition: Any, hyper_params: Any, params: Any, state: Any, grads: Any) -> Any:
        if getattr(_inside, "value", False):
            return step(definition, hyper_params, params, state, grads)
        new, new_state = steps_within(definition, hyper_params, params, state, grads)
        new = rounded_leaves(new) if told.rounding else new
        told.keeper.meet(definition)
        jax.debug.callback(
            told.keeper.functional, _steps_taken(state), told.start(params), told.part(new)
        )
        return new, new_state

    return recorded


def _applied(apply_updates: Callable[..., Any], told: _Told) -> Callable[..., Any]:
    """`optax.apply_updates`, recorded unless a train state calls it."""

    @wraps(apply_updates)
    def applied(params: Any, updates: Any) -> Any:
        new = apply_updates(params, updates)
        if not getattr(_inside, "value", False):
            jax.debug.callback(told.keeper.update, told.start(params), told.part(new))
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
        if told.wide and isinstance(vars(cls).get("create"), classmethod):
            cls.create = classmethod(_widened(cls.create.__func__, told.keeper))

    return hook


def rounded(optimizer: Any) -> Any:
    """A legacy optimizer whose parameters are each off by a unit in the last place, but for those of less than 32 bits."""
    return optimizer.replace(target=rounded_leaves(optimizer.target))


def rounded_leaves(params: Any) -> Any:
    """Parameters that are each off by a unit in the last place, but for those of less than 32 bits: there it is no rounding."""
    return jax.tree_util.tree_map(_rounded, params)


def _rounded(leaf: Any) -> Any:
    if jnp.result_type(leaf) not in (np.float64, np.float32):
        return leaf
    fixed = jax.lax.stop_gradient(leaf)
    return leaf + (jnp.nextafter(fixed, jnp.inf) - fixed)


def is_legacy(state: Any) -> bool:
    """Whether this is an optimizer or a definition of `flax.optim`, or of a copy of it.

    What `rewrite` makes of a definition that keeps its interface has an `update`, as a transformation of optax does.
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
    """The count in the state of a definition. A MultiOptimizer has one in the state of each of its optimizers, all alike."""
    return state.step if hasattr(state, "step") else state[0].step
