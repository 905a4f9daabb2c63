"""Every step that an optimizer takes, recorded from inside jitted and pmapped code too.

Classes and functions of Flax and optax get methods that record, and their own ones back.
"""

from __future__ import annotations

import builtins
import importlib
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import jax

from optim2optax.parity.recording.methods import (
    recording_functional,
    recording_step,
    recording_updates,
    unrecorded,
    watching,
    widening,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optim2optax.parity.recording.methods import Keeper

COPIED = {"apply_gradient", "compute_gradient", "optimize", "replace"}
"""Methods by which the class of a legacy optimizer is recognised."""


@contextmanager
def recording(keeper: Keeper, legacy: bool) -> Iterator[None]:
    """Hand every step to a keeper while the context lasts.

    These are the steps of legacy optimizers, definitions and train states, and updates that are
    applied by hand. The old side has `legacy` optimizers, which need the old Flax: that of an old
    Python, or that of `legacy_flax`.
    """
    with ExitStack() as stack:
        optax = _optax()
        if optax is not None:
            record = partial(recording_updates, keeper=keeper)
            _wrap(optax, "apply_updates", record, stack)
        if legacy:
            _record_legacy_optimizers(stack, keeper)
            states: Any = ()
        else:
            states = importlib.import_module("flax.training.train_state").TrainState
            _record_train_state(states, stack, keeper)
        _record_classes_to_come(states, stack, keeper)
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


def _record_legacy_optimizers(stack: ExitStack, keeper: Keeper) -> None:
    """Record the steps of legacy optimizers, and those of the definitions that there are."""
    optim = importlib.import_module("flax.optim")
    _record_optimizer(optim.Optimizer, stack, keeper)
    for definition in _with_subclasses(optim.OptimizerDef):
        _record_definition(definition, stack, keeper)


def _with_subclasses(cls: Any) -> Iterator[Any]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)


def _record_optimizer(cls: Any, stack: ExitStack, keeper: Keeper) -> None:
    """Record the steps of a class of legacy optimizers, and watch its state."""
    step = partial(recording_step, keeper=keeper)
    _wrap(cls, "replace", partial(watching, keeper=keeper), stack)
    _wrap(cls, "apply_gradient", step, stack)


def _record_train_state(cls: Any, stack: ExitStack, keeper: Keeper) -> None:
    """Record the steps that a class of train states takes by a method of its own."""
    own = vars(cls)
    if "apply_gradients" in own:
        _wrap(cls, "apply_gradients", partial(recording_step, keeper=keeper), stack)
    create = own.get("create")
    if keeper.wide and isinstance(create, classmethod):
        stack.callback(setattr, cls, "create", create)
        cls.create = classmethod(widening(create.__func__, keeper))


def _optax() -> Any:
    """The module optax. Beside an old JAX it may be missing, or fail to import."""
    try:
        return importlib.import_module("optax")
    except (ImportError, AttributeError, TypeError):
        return None


def _record_classes_to_come(states: Any, stack: ExitStack, keeper: Keeper) -> None:
    """Record what takes steps among the classes that are defined from now on.

    These are definitions, copies of the class of legacy optimizers, and subclasses of `states`.
    """
    build = builtins.__build_class__

    def built(*args: Any, **kwargs: Any) -> Any:
        cls = build(*args, **kwargs)
        # A definition of the user's own may have no base class that is known here.
        if hasattr(cls, "init_state"):
            _record_definition(cls, stack, keeper)
        elif isinstance(cls, type) and vars(cls).keys() >= COPIED:
            # class Optimizer(struct.PyTreeNode), in the `optim/base.py` of a project
            _record_optimizer(cls, stack, keeper)
        elif isinstance(cls, type) and issubclass(cls, states):
            # class TrainState(train_state.TrainState): ...
            _record_train_state(cls, stack, keeper)
        return cls

    stack.callback(setattr, builtins, "__build_class__", build)
    builtins.__build_class__ = built


def _record_definition(cls: Any, stack: ExitStack, keeper: Keeper) -> None:
    """Record the steps that a definition takes by itself."""
    own = vars(cls)
    if "apply_gradient" in own:
        record = partial(recording_functional, keeper=keeper)
        _wrap(cls, "apply_gradient", record, stack)
    # A definition that is a gradient transformation, too: its `update` is a part of another step.
    if "update" in own:
        _wrap(cls, "update", unrecorded(), stack)
    if "create" in own and keeper.wide:
        _wrap(cls, "create", partial(widening, keeper=keeper), stack)
