"""The optimizers that source texts give, evaluated outside of their program."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib import import_module
from itertools import chain
from typing import Any

import optax

from codemods.model import EmittedOptimizer
from optim2optax.legacy import legacy_optim
from optim2optax.parity.optimizer.coverage import scheduled_rate
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


def _check(emitted: EmittedOptimizer, sampled: Sample) -> None:
    """Check that both texts can be evaluated outside of their program.

    Raises:
        UnevaluableError: if code of the program may do more than compute, or if a sampled value
            stands for code that differs in the new tree.
    """
    found = possible_effect(sampled.legacy) or possible_effect(sampled.optax)
    if isinstance(emitted, Counterpart):
        found = (
            found
            or possible_effect_of(sampled.legacy_supports)
            or possible_effect_of(sampled.supports, emitted.known)
        )
        texts = (*sampled.named, emitted.schedule or "0")
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
