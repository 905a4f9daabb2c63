"""Where optimizers are pickled, and come out of pickles: a train state holds functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.facts import Facts
from codemods.analysis.queries import Queries
from codemods.analysis.stepping import STEPS
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.inference.control_flow import Owner
from codemods.inference.objects import LegacyObject
from codemods.sources.modules import Unit
from codemods.vocabulary import PICKLE, UNPICKLE

PICKLED, UNPICKLED = "pickled", "unpickled"


def pickles(facts: Facts) -> list[Use]:
    """Where optimizers are given to what pickles them, and where such come out that take steps."""
    found: list[Use] = []
    restored: dict[ast.Call, list[LegacyObject]] = {}
    for unit, call in facts.flow.reading.calls:
        names = facts.names(call.func)
        if names & PICKLE:
            for value in values_of(call):
                found += _pickled(facts, unit, value)
        elif names & UNPICKLE:
            restored[call] = []
    steps = (use for use in facts.uses if restored and use.kind in STEPS)
    for step in steps:
        for origin in facts.flow.origins(facts.flow.places[step.owner]):
            if isinstance(origin, ast.Call) and origin in restored:
                restored[origin] += step.objects
    for call, objects in restored.items():
        if objects:
            unit = facts.scope(call).unit
            own = tuple(dict.fromkeys(objects))
            found.append(Use("whole", UNPICKLED, unit, call, own))
    return found


def _pickled(facts: Queries, unit: Unit, node: ast.expr) -> Iterator[Use]:
    """The optimizers that are pickled by themselves, or in a display that is."""
    match node:
        case ast.Dict(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _pickled(facts, unit, part)
        # of what is made here, the call itself changes
        case ast.Call(func=ast.Attribute(value=owner)) if facts.legacy_objects(owner):
            return
        case _ if is_optimizer(facts, node):
            objects = tuple(facts.legacy_objects(node))
            yield Use("whole", PICKLED, unit, node, objects)


def is_optimizer(facts: Queries, node: ast.expr) -> bool:
    """Whether an expression is an optimizer, as far as anything is known of it."""
    items = [*facts.objects(node)]
    return bool(items) and all(
        isinstance(item, LegacyObject) and item.kind == "optimizer" for item in items
    )


def held_before(use: Use, facts: Queries) -> str | None:
    """The name that holds an optimizer before it is set to what comes out of a pickle."""
    around = use.parent
    match around:
        case ast.Assign(targets=[ast.Name(id=name) as target]):
            scope = facts.scope(target)
        case _:
            return None
    if not isinstance(scope.node, Owner):
        return None
    order = facts.flow.engine.reaching.order(scope.node)
    for binding in facts.flow.engine.bindings_of(scope, name):
        source = binding.source
        if source is None or binding.steps or binding.node is around:
            continue
        number = order.at.get(binding.node)
        is_held = number is not None and is_optimizer(facts, source)
        if is_held and order.dominates(number, order.at[around]):  # type: ignore[arg-type]
            return name
    return None
