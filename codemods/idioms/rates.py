"""The learning rate that a step computes, as a function of the optimizer's own step."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.origins import Origins
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


class Rates:
    """Finds the rates of steps."""

    def __init__(self, origins: Origins, counts: Counts, values: Values) -> None:
        self.origins = origins
        self.counts = counts
        self.values = values

    def of_step(self, given: ast.expr, use: Use) -> Value:
        """What `learning_rate=given` is: a function of the optimizer's own step, or a constant.

        Raises:
          Unproven: if it is neither, or made of what is not known elsewhere.
        """
        value = self.origins.expanded(given)
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            return Value(value, ())

        doubts: list[Unproven] = []

        def ahead(node: ast.expr) -> int | None:
            try:
                return self.counts.ahead(node, use)
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
                self.values.of(value)
            raise Unproven("it does not come from the optimizer's own step")
        if not self._has_no_effect(value, ahead):
            raise Unproven("what computes it changes something, too")
        dataflow = self.values.facts.dataflow
        assert use.call is not None
        if not dataflow.stays([value], value, use.call, known=False):
            raise Unproven("what it is made of changes before the step is taken")
        return _function_of_step(self.values.of(value, exchange))

    def _has_no_effect(
        self,
        value: ast.expr,
        ahead: Callable[[ast.expr], int | None],
    ) -> bool:
        """Whether computing a rate has no effect; a function of the step may be unknown."""
        facts = self.values.facts
        unit = facts.scope(value).unit
        for node in evaluated(value):
            effects = facts.dataflow.evaluations.at(unit, node)
            if effects.writes:
                return False
            if effects.acts and not self._is_unknown_of_step(node, ahead):
                return False
        return True

    def _is_unknown_of_step(
        self,
        node: ast.AST,
        ahead: Callable[[ast.expr], int | None],
    ) -> bool:
        """Whether this is `schedule(optimizer.state.step)` of an unknown `schedule`.

        So is a method of the step, which is an array: `optimizer.state.step.astype(float)`.
        """
        if not isinstance(node, ast.Call):
            return False
        match node.func:
            case ast.Attribute(value=owner, attr=name) if name in ARRAY_METHODS:
                return ahead(owner) is not None and name not in CONCRETE
        if self.values.facts.full_name(node.func).startswith("builtins."):
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
