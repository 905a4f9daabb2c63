"""The learning rate that a step computes, as a function of the optimizer's own step."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.facts import Facts
from codemods.analysis.uses import Use
from codemods.dataflow.evaluation import evaluated
from codemods.dataflow.pure import ARRAY_METHODS
from codemods.idioms import Unproven
from codemods.idioms.counts import Counts
from codemods.idioms.values import Value, Values
from codemods.inference.binding import values_of

COUNT = "step"
CONCRETE = ("item", "tolist", "block_until_ready")
"""The methods of arrays that a traced one has not."""


Ahead = Callable[[ast.expr], int | None]
"""By how much an expression is ahead of the optimizer's own count."""


def rate_of_step(given: ast.expr, use: Use, counts: Counts, values: Values) -> Value:
    """What `learning_rate=given` is: a function of the optimizer's own step, or a constant."""
    facts = values.facts
    value = values.origins.expanded(given)
    if isinstance(value, ast.Constant) and type(value.value) in (int, float):
        return Value(value, ())

    doubts: list[Unproven] = []

    def ahead(node: ast.expr) -> int | None:
        try:
            return counts.ahead(node, use)
        except Unproven as why:
            doubts.append(why)
            return None

    def exchange(node: ast.expr) -> ast.expr | None:
        more = ahead(node)
        if more is None:
            return None
        # optimizer.state.step + 1 is `step + 1`
        count = f"{COUNT} + {more}" if more else COUNT
        return ast.parse(count, mode="eval").body

    parts = (node for node in ast.walk(value) if isinstance(node, ast.expr))
    if all(ahead(node) is None for node in parts):
        if doubts:
            raise doubts[0]
        # a name with several values: `values` says so
        if isinstance(value, ast.Name):
            values.of(value)
        raise Unproven("it does not come from the optimizer's own step")
    if not _has_no_effect(value, ahead, facts):
        raise Unproven("what computes it changes something, too")
    assert use.call is not None
    if not facts.dataflow.stays([value], value, use.call, known=False):
        raise Unproven("what it is made of changes before the step is taken")
    return _function_of_step(values.of(value, exchange))


def _has_no_effect(value: ast.expr, ahead: Ahead, facts: Facts) -> bool:
    """Whether computing a rate has no effect; a function of the step may be unknown."""
    unit = facts.scope(value).unit
    for node in evaluated(value):
        effects = facts.dataflow.evaluations.at(unit, node)
        if effects.writes:
            return False
        if effects.acts and not _is_unknown_of_step(node, ahead, facts):
            return False
    return True


def _is_unknown_of_step(node: ast.AST, ahead: Ahead, facts: Facts) -> bool:
    """Whether this is `schedule(optimizer.state.step)` of an unknown `schedule`.

    So is a method of the step, which is an array: `optimizer.state.step.astype(float)`.
    """
    if not isinstance(node, ast.Call):
        return False
    match node.func:
        case ast.Attribute(value=owner, attr=name) if name in ARRAY_METHODS:
            return ahead(owner) is not None and name not in CONCRETE
    if facts.full_name(node.func).startswith("builtins."):
        return False
    return any(ahead(one) is not None for one in values_of(node))


def _function_of_step(found: Value) -> Value:
    """A value with the step as a function of it: `schedule` itself, or a lambda."""
    match found.expression:
        # schedule(step)
        case ast.Call(
            func=ast.Name() as function, args=[ast.Name(id="step")], keywords=[]
        ):
            return Value(function, found.parts)
    count = ast.arguments([], [ast.arg(COUNT)], None, [], [], None, [])
    return Value(ast.Lambda(count, found.expression), found.parts)
