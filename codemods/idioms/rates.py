"""The learning rate that a step computes, as a function of the optimizer's own step."""

from __future__ import annotations

import ast

from codemods.idioms import Unproven
from codemods.idioms.counts import Counts, Step
from codemods.idioms.quiet import acts
from codemods.idioms.standard import standard
from codemods.idioms.tracing import is_traceable
from codemods.idioms.values import Value, Values, common_value
from codemods.origins import Origins, Path
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

        Where it is a parameter of the function that takes the step, it is what all calls of that function give.

        Raises:
          Unproven: if it is neither, or made of what is not known elsewhere.
        """
        value, step = self.origins.expanded(value), self.counts.step(use)
        if isinstance(value, ast.Name) and (calls := self._calls(value, step)):
            return common_value([self._of(given, inner, is_outside=True) for given, inner in calls])
        return self._of(value, step)

    def _calls(self, value: ast.Name, step: Step) -> list[tuple[ast.expr, Step]]:
        """What each call of a function gives for the rate, and the step that it takes there; none if that is not plain to see."""
        variable = self.origins.variable(value)
        function = self.origins.parameter(variable) if variable is not None else None
        path = step.optimizer
        if variable is None or function is None or path is None or path.root.scope.node is not function:
            return []
        if not self.origins.unchanged(path.root, function.args, step.node):
            return []
        found: list[tuple[ast.expr, Step]] = []
        for binding in self.origins.bindings(function) or ():
            rate, optimizer = binding.given.get(variable.name), binding.given.get(path.root.name)
            if rate is None or optimizer is None:
                return []
            outer = self.origins.path(optimizer.value)
            if outer is None:
                return []
            whole = Path(outer.root, (*outer.attributes, *path.attributes))
            found.append((self.origins.expanded(rate.value), Step(whole, binding.call)))
        return found

    def _of(self, value: ast.expr, step: Step, is_outside: bool = False) -> Value:
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            return Value(value, ())

        doubts: list[Unproven] = []

        def ahead(node: ast.expr) -> int | None:
            try:
                return self.counts.ahead(node, step)
            except Unproven as why:
                doubts.append(why)
                return None

        def exchange(node: ast.expr) -> ast.expr | None:
            more = ahead(node)
            if more is None:
                return None
            return ast.parse(f"{COUNT} + {more}" if more else COUNT, mode="eval").body

        if all(ahead(node) is None for node in ast.walk(value) if isinstance(node, ast.expr)):
            if doubts:
                raise doubts[0]
            if isinstance(value, ast.Name):
                self.values.of(value)
            raise Unproven("it does not come from the optimizer's own step")
        if acts(value):
            raise Unproven("what computes it changes something, too")
        if is_outside and not is_traceable(value, self.values.facts, self.origins):
            raise Unproven("it is computed outside of the step, by something that may need a plain number")
        if self.by_optax and (made := standard(value, ahead, self.values.facts)):
            return self.values.of(made, longest=LONGEST)
        found = self.values.of(value, exchange)
        match found.expression:
            case ast.Call(func=ast.Name() as function, args=[ast.Name(id="step")], keywords=[]):
                return Value(function, found.parts)
        count = ast.arguments([], [ast.arg(COUNT)], None, [], [], None, [])
        return Value(ast.Lambda(count, found.expression), found.parts)
