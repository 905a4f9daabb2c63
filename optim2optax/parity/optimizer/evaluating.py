"""The optimizers that source texts give, evaluated outside of their program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp
import optax

from codemods.model import EmittedOptimizer
from optim2optax.legacy import legacy_optim
from optim2optax.parity.optimizer.coverage import rate, scheduled_rate, sets_rate
from optim2optax.parity.optimizer.harmless import possible_effect, possible_effect_of
from optim2optax.parity.optimizer.sampling import (
    KNOWN_MODULES,
    first_outside,
    names_in,
)
from optim2optax.parity.optimizer.texts import (
    SCHEDULE,
    TRAVERSAL,
    Counterpart,
    Sample,
    names_defined,
    sampled_texts,
)

ALIASES = {"jnp": "jax.numpy", "np": "numpy", "onp": "numpy"}
MODULES = {
    name: import_module(ALIASES.get(name, name))
    for name in KNOWN_MODULES
    if name != "optim"
}
"""What the texts may use; the package `optim` is that of each side."""


class UnevaluableError(ValueError):
    """A definition that needs more of its program than values; the message says what."""


def evaluate(emitted: EmittedOptimizer) -> tuple[Any, optax.GradientTransformation]:
    """The old definition and the new transformation that the texts of an optimizer give.

    Raises:
        UnevaluableError: if one of them cannot be evaluated.
    """
    sampled = sampled_texts(emitted)
    _check(emitted, sampled)
    given = {
        **MODULES,
        **sampled.values,
        SCHEDULE: scheduled_rate,
        TRAVERSAL.__name__: TRAVERSAL,
    }
    with legacy_optim() as optim:
        names = {**given, "optim": optim}
        _define(sampled.legacy_supports, names)
        old = _evaluate(sampled.legacy, names)
        names = {**given, "optim": optim}
        _define(sampled.supports, names)
        new = _evaluate(sampled.optax, names)
    # Such as a schedule, or a function that makes a transformation.
    if not (hasattr(new, "init") and hasattr(new, "update")):
        raise UnevaluableError(f"`{emitted.after}` is not a gradient transformation")
    return old, new


def rates(emitted: EmittedOptimizer, new: Any) -> Callable[[int], Any] | None:
    """The learning rate that is given to each step, by its number; None if none is.

    Raises:
        UnevaluableError: if a new transformation has a schedule, and that of the old steps is not
            known.
    """
    if not sets_rate(emitted):
        return None
    is_other = isinstance(emitted, Counterpart) and (
        emitted.has_other_schedule or not emitted.schedule
    )
    # with a rate that does not change, any that changes shows the difference
    if not is_other or not _has_schedule(new):
        return rate
    sampled = sampled_texts(emitted)
    if not sampled.schedule:
        raise UnevaluableError(
            "each step of the old code sets the learning rate, and the new transformation has a "
            "schedule; a command behind -- runs both"
        )
    names = {**MODULES, **sampled.values}
    _define(sampled.legacy_supports, names)
    schedule = _evaluate(sampled.schedule, names)
    return lambda step: schedule(jnp.asarray(step))


def _has_schedule(transformation: optax.GradientTransformation) -> bool:
    """Whether a transformation changes its rates by a schedule."""
    state = transformation.init({"kernel": jnp.ones((2, 2))})
    count = optax.ScaleByScheduleState
    leaves = jax.tree_util.tree_leaves(
        state, is_leaf=lambda node: isinstance(node, count)
    )
    return any(isinstance(leaf, count) for leaf in leaves)


def _check(emitted: EmittedOptimizer, sampled: Sample) -> None:
    """Check that both texts can be evaluated outside of their program.

    Raises:
        UnevaluableError: if code of the program may do more than compute, or if a sampled value
            stands for code that differs in the new tree.
    """
    of_old = f"({sampled.legacy}, {sampled.schedule or None})"
    found = possible_effect(of_old) or possible_effect(sampled.optax)
    if isinstance(emitted, Counterpart):
        found = (
            found
            or possible_effect_of(sampled.legacy_supports)
            or possible_effect_of(sampled.supports, emitted.known)
        )
        schedule = "" if sampled.schedule else emitted.schedule
        texts = (*sampled.named, schedule or "0")
        hidden = set(chain.from_iterable(map(names_in, texts)))
        if changed := sorted(hidden & emitted.changed):
            raise UnevaluableError(
                f"`{changed[0]}` is not the same in both trees, "
                "and needs more of its program than values; "
                "a scenario can run the program itself"
            )
        given = {*sampled.values, SCHEDULE, TRAVERSAL.__name__}
        given.update(names_defined(sampled.supports))
        tree = ast.parse(sampled.optax, mode="eval")
        if unknown := first_outside(tree, {*KNOWN_MODULES, *given}):
            raise UnevaluableError(
                f"the new code needs `{unknown}`, of which the old definition says nothing; "
                "a scenario can run the program itself"
            )
        given.update(names_defined(sampled.legacy_supports))
        tree = ast.parse(sampled.schedule or "0", mode="eval")
        if unknown := first_outside(tree, {*KNOWN_MODULES, *given}):
            raise UnevaluableError(
                f"the steps of the old code follow `{sampled.schedule}`, which needs `{unknown}`; "
                "a command behind -- runs both"
            )
    if found:
        raise UnevaluableError(
            f"`{found}` is not evaluated, because it may do more than compute; "
            "a scenario can run the program itself"
        )


def _define(sources: Iterable[str], names: dict[str, Any]) -> None:
    """Execute functions and classes, whose annotations stay text."""
    for source in sources:
        try:
            exec(compile(source, "<emitted>", "exec", annotations.compiler_flag), names)
        except Exception as error:
            first = source.lstrip().partition("\n")[0]
            raise UnevaluableError(
                f"`{first}` cannot be evaluated by itself: {type(error).__name__}: {error}"
            ) from error


def evaluate_text(text: str) -> Any:
    """The definition or transformation that a source text gives.

    The text calls the old package `optim`.

    Raises:
        UnevaluableError: if it cannot be evaluated by itself.
    """
    with legacy_optim() as optim:
        return _evaluate(text, {**MODULES, "optim": optim})


def _evaluate(text: str, names: dict[str, Any]) -> Any:
    try:
        return eval(text, names)
    except Exception as error:
        raise UnevaluableError(
            f"`{text}` cannot be evaluated by itself: {type(error).__name__}: {error}"
        ) from error
