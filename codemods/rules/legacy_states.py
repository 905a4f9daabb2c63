"""Functions that make a new state of an optimizer's state, by the fields that it had."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.edits import Edit, Replace
from codemods.flow.objects import Thing
from codemods.model import Refusal
from codemods.optimizers.views import DERIVABLE, param_state, to_legacy
from codemods.rules import rule
from codemods.rules.context import Context, legacy_bases
from codemods.rules.types import made_by_hand
from codemods.uses import Use


def viewed_as(use: Use, context: Context) -> str | None:
    """The optimizer in whose legacy form the state at a use is kept, if it is: one that is taken only to be put back changed."""
    read = context.facts.things(use.node, "state") if isinstance(use.node, ast.expr) else []
    return _only_view(read if use.name == "state" else use.things, context)


def legacy_state(use: Use, optimizer: str) -> Edit:
    """The legacy state in the place of `optimizer.state`."""
    supports = to_legacy(optimizer)
    return Replace(use.span, f"{{support:{supports[-1].name}}}({{owner}})", (use.owner_hole,), supports)


def put_back(value: ast.expr, use: Use, context: Context) -> str | None:
    """The optimizer in whose legacy form the state is that `optimizer.replace(state=value)` puts back, if it is."""
    read = (node for node in ast.walk(value) if isinstance(node, ast.Attribute) and node.attr == "state")
    return _only_view((state for node in read for state in context.facts.things(node, "state")), context)


def _only_view(states: Iterable[Thing], context: Context) -> str | None:
    names = {context.viewed.get(state) for state in states}
    return names.pop() if len(names) == 1 else None


@rule(
    "FO213", "what an optimizer keeps for a parameter", *(f"definition:_{name}ParamState" for name in sorted(DERIVABLE))
)
def made(use: Use, context: Context) -> Edit | Refusal:
    """A function that makes a new state of an old one, as in `optimizer.replace(state=function(optimizer.state))`, keeps its
    form: it is given the state as it was, made from the train state, and the result is put back.

    The classes of which such a state was made, `OptimizerState` and the private one of its optimizer, are added to the file, as
    is the latter for a class that derives from that optimizer (FO701).
    """
    assert isinstance(use.node, ast.Call)
    optimizer = use.name.removeprefix("_").removesuffix("ParamState")
    if optimizer not in context.viewed.values() and optimizer not in legacy_bases(use, context.facts):
        return made_by_hand(use)
    support = param_state(optimizer)
    return Replace(use.unit.span(use.node.func), f"{{support:{support.name}}}", supports=(support,))
