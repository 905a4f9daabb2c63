"""The function of optax for a legacy class whose calls give it arguments that both have."""

from __future__ import annotations

import ast

from codemods.analysis.legacy import legacy_name
from codemods.analysis.uses import Use
from codemods.inference.objects import Partial
from codemods.optimizers import optimizers
from codemods.optimizers.base import RATE
from codemods.optimizers.functions import Alias, alias
from codemods.rules.context import Context


def alias_of_value(use: Use, context: Context) -> Alias | None:
    """The function for a class in a variable; none for one in a partial application."""
    given: set[str] = set()
    for obj in use.objects:
        call = obj.node
        if not isinstance(call, ast.Call) or not _calls(call, use, context):
            return None
        names = _given(use.name, call, context)
        if names is None:
            return None
        given |= names
    return _alias(use, given, context)


def alias_of_call(use: Use, context: Context) -> Alias | None:
    """The function for a class that is called with `**arguments`, the keys of which are known."""
    assert isinstance(use.node, ast.Call)
    given = _given(use.name, use.node, context)
    return None if given is None else _alias(use, given, context)


def _calls(call: ast.Call, use: Use, context: Context) -> bool:
    """Whether what is called is the class at a use, by no partial application."""
    called = context.facts.objects(call.func)
    names = map(legacy_name, context.facts.externals(call.func))
    is_partial = any(isinstance(item, Partial) for item in called)
    return not is_partial and use.name in names


def _given(optimizer: str, call: ast.Call, context: Context) -> set[str] | None:
    """The arguments that a call may give by name; None if not all their names are known."""
    # cls(rate, 0.9)
    if len(call.args) > 1 or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    names = {RATE for _ in call.args}
    for word in call.keywords:
        # cls(**arguments)
        keys = {word.arg} if word.arg else context.stepping.keys_of(word.value)
        if keys is None or None in keys:
            keys = {one.name for one in optimizers()[optimizer].parameters}
        names.update(map(str, keys))
    return names


def _alias(use: Use, given: set[str], context: Context) -> Alias | None:
    """The function that takes the arguments of calls.

    A call out of view may give the learning rate alone. So `optax.adamw`, where the weights decay
    by default, is none for a call that gives `weight_decay`.
    """
    form = context.stepping.options.form
    least = alias(use.name, {RATE}, form)
    most = alias(use.name, {RATE, *given}, form)
    if least is None or most is None or least.function != most.function:
        return None
    is_same = all(most.names[one] == one for one in given)
    return most if RATE in given and is_same else None
