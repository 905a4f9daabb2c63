"""Every step that an optimizer takes, recorded from inside jitted and pmapped code too.

Classes and functions of Flax and optax get methods that record, and their own ones back.

An old Python runs this as well, from Python 3.8 on.
"""

from __future__ import annotations

import builtins
import importlib
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
from flax import struct

from optim2optax.parity.recording.methods import (
    Settings,
    recording_functional,
    recording_step,
    recording_updates,
    suspending,
    watching,
    widening,
)
from optim2optax.parity.recording.optimizers import averaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optim2optax.parity.recording.methods import Keeper

COPIED = {"apply_gradient", "compute_gradient", "optimize"}
"""Methods by which the class of a legacy optimizer is recognised."""


def whole(tree: Any) -> Any:
    """A tree as it is."""
    return tree


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
    settings = Settings(keeper, start, part, beside, legacy and rounding, wide)
    with ExitStack() as stack:
        optax = _optax()
        if optax is not None:
            _wrap(
                optax,
                "apply_updates",
                partial(recording_updates, settings=settings),
                stack,
            )
        _record_copies(stack, settings)
        _record_definitions_to_come(stack, settings)
        if legacy:
            _record_legacy_optimizers(stack, settings)
        else:
            _record_train_states(stack, settings)
        yield
        # Callbacks may still be under way.
        jax.effects_barrier()  # type: ignore[no-untyped-call]


def _wrap(
    owner: Any,
    name: str,
    wrapper: Callable[[Callable[..., Any]], Any],
    stack: ExitStack,
) -> None:
    """Put a wrapper around a function of a module or a method of a class, until the stack ends."""
    stack.callback(setattr, owner, name, vars(owner)[name])
    setattr(owner, name, wrapper(getattr(owner, name)))


def _record_legacy_optimizers(stack: ExitStack, settings: Settings) -> None:
    """Record the steps of legacy optimizers, and those of the definitions that there are."""
    optim = importlib.import_module("flax.optim")
    _record_optimizer(optim.Optimizer, stack, settings)
    for definition in _with_subclasses(optim.OptimizerDef):
        _record_definition(definition, stack, settings)


def _with_subclasses(cls: Any) -> Iterator[Any]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)


def _record_optimizer(cls: Any, stack: ExitStack, settings: Settings) -> None:
    """Record the steps of a class of legacy optimizers, and watch its state."""
    step = partial(recording_step, settings=settings, rounding=settings.rounding)
    _wrap(cls, "replace", partial(watching, keeper=settings.keeper), stack)
    _wrap(cls, "apply_gradient", step, stack)


def _record_train_states(stack: ExitStack, settings: Settings) -> None:
    """Record the steps of train states, and of their subclasses as they are defined."""
    cls: Any = importlib.import_module("flax.training.train_state").TrainState
    stack.callback(delattr, cls, "__init_subclass__")
    cls.__init_subclass__ = classmethod(_subclass_hook(settings, cls))
    if settings.wide:
        create = vars(cls)["create"]
        stack.callback(setattr, cls, "create", create)
        cls.create = classmethod(widening(create.__func__, settings.keeper))
    _wrap(cls, "apply_gradients", partial(recording_step, settings=settings), stack)


def _subclass_hook(settings: Settings, base: Any) -> Callable[..., None]:
    """The `__init_subclass__` that records the step of each subclass of `base`."""

    # class TrainState(train_state.TrainState): ...
    def hook(cls: Any, **arguments: Any) -> None:
        super(base, cls).__init_subclass__(**arguments)
        own = vars(cls)
        if "apply_gradients" in own:
            cls.apply_gradients = recording_step(own["apply_gradients"], settings)
        if settings.wide and isinstance(own.get("create"), classmethod):
            cls.create = classmethod(widening(cls.create.__func__, settings.keeper))

    return hook


def _optax() -> Any:
    """The module optax. Beside an old JAX it may be missing, or fail to import."""
    try:
        return importlib.import_module("optax")
    except (ImportError, AttributeError, TypeError):
        return None


def _record_copies(stack: ExitStack, settings: Settings) -> None:
    """Record optimizers of a copy of `flax.optim`, on either side, as soon as it is imported."""
    base: Any = struct.PyTreeNode
    before = vars(base)["__init_subclass__"]

    def hook(cls: Any, /, **arguments: Any) -> None:
        before.__get__(None, cls)(**arguments)
        # @struct.dataclass class Optimizer, in the `optim/base.py` of a project
        if vars(cls).keys() >= COPIED:
            _record_optimizer(cls, stack, settings)

    stack.callback(setattr, base, "__init_subclass__", before)
    base.__init_subclass__ = classmethod(hook)


def _record_definitions_to_come(stack: ExitStack, settings: Settings) -> None:
    """Record the definitions among the classes that are defined from now on."""
    build = builtins.__build_class__

    def built(*args: Any, **kwargs: Any) -> Any:
        cls = build(*args, **kwargs)
        # A definition of the user's own may have no base class that is known here.
        if hasattr(cls, "init_state"):
            _record_definition(cls, stack, settings)
        return cls

    stack.callback(setattr, builtins, "__build_class__", build)
    builtins.__build_class__ = built


def _record_definition(cls: Any, stack: ExitStack, settings: Settings) -> None:
    """Record the steps that a definition takes by itself."""
    own = vars(cls)
    if "apply_gradient" in own:
        _wrap(
            cls,
            "apply_gradient",
            partial(recording_functional, settings=settings),
            stack,
        )
    # A definition that is a gradient transformation, too: its `update` is a part of another step.
    if "update" in own:
        _wrap(cls, "update", suspending, stack)
    if "create" in own and settings.wide:
        _wrap(cls, "create", partial(widening, keeper=settings.keeper), stack)
