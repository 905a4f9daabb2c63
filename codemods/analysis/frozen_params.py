"""Where an optimizer gets frozen parameters: those that a model makes are plain dicts today."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.facts import Facts
from codemods.analysis.model_apply import INITIALIZING, origin
from codemods.inference.binding import values_of
from codemods.inference.objects import LegacyObject

FROZEN = frozenset(("flax.core.freeze", "flax.core.frozen_dict.freeze"))


def frozen(node: ast.expr, facts: Facts) -> ast.expr | None:
    """What is frozen by an expression; None if it is not `flax.core.freeze(params)`."""
    match node:
        case ast.Call(func=function, args=[params], keywords=[]):
            return None if FROZEN.isdisjoint(facts.names(function)) else params
    return None


def are_plain(optimizers: Iterable[LegacyObject], facts: Facts) -> bool:
    """Whether the parameters with which optimizers were created came from models as they are."""
    return all(_is_plain(params, facts) for params in _created_for(optimizers))


def are_frozen(optimizers: Iterable[LegacyObject], facts: Facts) -> bool:
    """Whether the parameters with which optimizers were created were frozen."""
    return all(
        params is not None and frozen(params, facts) is not None
        for params in _created_for(optimizers)
    )


def _created_for(optimizers: Iterable[LegacyObject]) -> list[ast.expr | None]:
    """The params of each call of `create`; None for an optimizer that another call gives."""
    found: list[ast.expr | None] = []
    for optimizer in optimizers:
        match optimizer.node:
            case ast.Call(func=ast.Attribute(attr="create")) as call:
                found.append(next(iter(values_of(call)), None))
            case _:
                found.append(None)
    return found


def _is_plain(params: ast.expr | None, facts: Facts) -> bool:
    made = None if params is None else origin(params, facts)
    if made is None:
        return False
    # model.init(key, x), jax.jit(model.init)(key, x)
    parts = ast.walk(made.func)
    return any(
        isinstance(one, ast.Attribute) and one.attr in INITIALIZING for one in parts
    )
