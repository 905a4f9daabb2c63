"""The function of optax for a legacy class whose calls give it arguments that both have."""

from __future__ import annotations

import ast
from collections.abc import Collection

from codemods.analysis.legacy import legacy_name
from codemods.analysis.uses import Use
from codemods.inference.objects import Partial
from codemods.optimizers import optimizers
from codemods.optimizers.base import RATE
from codemods.optimizers.functions import Alias, alias
from codemods.rules.context import Context


def alias_of_value(use: Use, context: Context) -> Alias | None:
    """The function for a class in a variable, or in a partial application."""
    partial = partial_of(use, context)
    # partial(optim.Adam, **arguments), of which the names cannot be changed
    if partial is not None and any(word.arg is None for word in partial.keywords):
        return None
    first = set[str]() if partial is None else _given(use.name, partial, context, 1)
    is_first_given = partial is not None and len(partial.args) > 1
    later: set[str] = set()
    for obj in use.objects:
        call = obj.node
        if not isinstance(call, ast.Call):
            return None
        called = context.facts.objects(call.func)
        partials = {item.call for item in called if isinstance(item, Partial)}
        # of another partial application of the class
        if partial is not None and partials and partial not in partials:
            continue
        by_name = {*map(legacy_name, context.facts.externals(call.func))}
        expected = set[ast.Call]() if partial is None else {partial}
        if partials != expected or (partial is None and use.name not in by_name):
            return None
        names = _given(use.name, call, context)
        # partial(optim.Adam, 1e-3)(0.9)
        if names is None or (is_first_given and call.args):
            return None
        later |= names
    return None if first is None else _alias(use, first, later, context)


def alias_of_call(use: Use, context: Context) -> Alias | None:
    """The function for a class that is called with `**arguments`, the keys of which are known."""
    assert isinstance(use.node, ast.Call)
    given = _given(use.name, use.node, context)
    return None if given is None else _alias(use, (), given, context)


def partial_of(use: Use, context: Context) -> ast.Call | None:
    """The `functools.partial(optim.Adam, beta1=0.5)` around a class."""
    match use.parent:
        case ast.Call(args=[first, *_]) as call if first is use.node:
            if "functools.partial" in context.facts.externals(call.func):
                return call
    return None


def _given(
    optimizer: str, call: ast.Call, context: Context, behind: int = 0
) -> set[str] | None:
    """The arguments that a call may give by name, without the first; None if one is unknown."""
    positional = call.args[behind:]
    # cls(rate, 0.9)
    if len(positional) > 1 or any(isinstance(one, ast.Starred) for one in positional):
        return None
    names = {RATE for _ in positional}
    for word in call.keywords:
        # cls(**arguments)
        keys = {word.arg} if word.arg else context.stepping.keys_of(word.value)
        if keys is None or None in keys:
            keys = {one.name for one in optimizers()[optimizer].parameters}
        names.update(map(str, keys))
    return names


def _alias(
    use: Use, first: Collection[str], later: set[str], context: Context
) -> Alias | None:
    """The function that takes the arguments of a partial application, and those of its calls.

    A call out of view may give the learning rate alone. So `optax.adamw`, where the weights decay
    by default, is none for a call that gives `weight_decay`.
    """
    form = context.stepping.options.form
    least = alias(use.name, {*first, RATE}, form)
    most = alias(use.name, {*first, RATE, *later}, form)
    if least is None or most is None or least.function != most.function:
        return None
    is_given_rate = RATE in {*first, *later}
    return (
        most if is_given_rate and all(most.names[one] == one for one in later) else None
    )
