"""The learning rate that a step computes, as a function of the optimizer's own step."""

from __future__ import annotations

import ast

from codemods.idioms import Unproven
from codemods.idioms.counts import Counts
from codemods.idioms.standard import standard
from codemods.idioms.values import Value, Values
from codemods.origins import Origins
from codemods.uses import Use

COUNT = "step"
LONGEST = 150
"""A schedule of optax of more characters is not written elsewhere."""


class Rates:
    """Finds the rates of steps; `by_optax` says them as schedules of optax where they are such."""

    def __init__(self, origins: Origins, counts: Counts, values: Values, by_optax: bool) -> None:
        self.origins = origins
        self.counts = counts
        self.values = values
        self.by_optax = by_optax

    def of_step(self, value: ast.expr, use: Use) -> Value:
        """What `learning_rate=value` is at a step: a function of the optimizer's own step, or a constant.

        Raises:
          Unproven: if it is neither, or made of what is not known elsewhere.
        """
        value = self.origins.expanded(value)
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            return Value(value, ())

        def exchange(node: ast.expr) -> ast.expr | None:
            ahead = self.counts.ahead(node, use)
            if ahead is None:
                return None
            return ast.parse(f"{COUNT} + {ahead}" if ahead else COUNT, mode="eval").body

        if not self._mentions_count(value, use):
            if isinstance(value, ast.Name):
                self.values.of(value)
            raise Unproven("it does not come from the optimizer's own step")
        if self.by_optax and (made := standard(value, lambda node: self.counts.ahead(node, use), self.values.facts)):
            return self.values.of(made, longest=LONGEST)
        found = self.values.of(value, exchange)
        match found.expression:
            case ast.Call(func=ast.Name() as function, args=[ast.Name(id="step")], keywords=[]):
                return Value(function, found.parts)
        count = ast.arguments([], [ast.arg(COUNT)], None, [], [], None, [])
        return Value(ast.Lambda(count, found.expression), found.parts)

    def _mentions_count(self, value: ast.expr, use: Use) -> bool:
        return any(self.counts.ahead(node, use) is not None for node in ast.walk(value) if isinstance(node, ast.expr))
