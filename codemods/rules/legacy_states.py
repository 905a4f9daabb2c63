"""Functions that make a new state of an optimizer's state, by the fields that it had."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.legacy import legacy_name
from codemods.analysis.uses import Use, legacy_bases
from codemods.inference.objects import LegacyObject, Object, Result
from codemods.model import Refusal
from codemods.optimizers import optimizers
from codemods.optimizers.views import is_viewable, param_state, to_legacy
from codemods.rewriting.edits import Edit, Keep, Replace
from codemods.rules import rule
from codemods.rules.context import Context
from codemods.rules.types import made_by_hand

WITH_STATES = [
    name
    for name, optimizer in optimizers().items()
    if optimizer.rule and optimizer.state
]
"""The optimizers from which a class of the user's own may derive, and which have a state for each
parameter."""


def viewed_as(use: Use, context: Context) -> str | None:
    """The optimizer in whose legacy form the state at a use is read, if there is one."""
    if use.name != "state":
        return _only_view(use.objects, context)
    # optimizer.state, a use of the optimizer
    if not isinstance(use.node, ast.expr):
        return None
    states = context.facts.legacy_objects(use.node, "state")
    return _only_view(states, context)


def legacy_state(node: ast.expr, use: Use, optimizer: str) -> Edit | Keep:
    """The legacy state in the place of `optimizer.state`.

    Any other expression has a state that was made so, in the legacy form already.
    """
    # `state.param_states`, within a function that is given `optimizer.state`
    if not isinstance(node, ast.Attribute) or node.attr != "state":
        return Keep()
    supports = to_legacy(optimizer)
    owner = ("owner", use.unit.span(node.value))
    template = f"{{support:{supports[-1].name}}}({{owner}})"
    return Replace(use.unit.span(node), template, (owner,), supports)


def put_back(value: ast.expr, use: Use, context: Context) -> str | None:
    """The optimizer in whose legacy form a value of `optimizer.replace(state=value)` is, if any."""
    made = {definition.made_by for definition in context.stepping.definitions(use)}
    are_known = all(map(context.facts.legacy.definitions, use.objects))
    # the legacy form is that of one class, so all optimizers here have to be of one
    if len(made) != 1 or not are_known:
        return None
    [name] = made
    items = [*context.facts.objects(value)]
    if not isinstance(name, str) or not is_viewable(name) or not items:
        return None
    if not all(_is_legacy_state(item, name, context) for item in items):
        return None
    return name


def _is_legacy_state(item: Object, optimizer: str, context: Context) -> bool:
    """Whether an object is a state that is read in the legacy form, or made by the program."""
    match item:
        # optimizer.state
        case LegacyObject(kind="state"):
            return context.viewed.states.get(item) == optimizer
        # OptimizerState(step, param_states)
        case Result(name=name):
            return legacy_name(name) == "OptimizerState"
    return False


def _only_view(states: Iterable[LegacyObject], context: Context) -> str | None:
    """The optimizer in whose legacy form all of some states are read."""
    names = {context.viewed.states.get(state) for state in states}
    return names.pop() if len(names) == 1 else None


@rule(
    "FO213",
    "what an optimizer keeps for a parameter",
    *(f"definition:_{name}ParamState" for name in WITH_STATES),
)
def made(use: Use, context: Context) -> Edit | Refusal:
    """Code that works on an optimizer's state keeps its form: it gets the old state, rebuilt from
    the train state, and the argument of `optimizer.replace(state=…)` is converted back.

    The classes of such a state, `OptimizerState` and the private one of its optimizer, are added to
    the project. So is the private one for a class that derives from that optimizer (FO701).
    """
    assert isinstance(use.node, ast.Call)
    optimizer = use.name.removeprefix("_").removesuffix("ParamState")
    is_viewed = optimizer in context.viewed.states.values()
    if not is_viewed and optimizer not in legacy_bases(use, context.facts):
        return made_by_hand(use)
    support = param_state(optimizer)
    function = use.unit.span(use.node.func)
    return Replace(function, f"{{support:{support.name}}}", supports=(support,))
