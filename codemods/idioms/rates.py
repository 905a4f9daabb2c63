"""The learning rate that a step computes, as a function of the optimizer's own step."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.origins import Origins, Path, Variable
from codemods.analysis.uses import Use
from codemods.dataflow.evaluation import evaluated
from codemods.idioms import Unproven
from codemods.idioms.counts import Counts, SeenStep
from codemods.idioms.tracing import is_traceable
from codemods.idioms.values import Value, Values, common_value
from codemods.inference.binding import values_of
from codemods.vocabulary import FILL_ARRAYS, words

COUNT = "step"
FILLING = frozenset(words("fill itemset partition put resize sort"))
"""The methods of arrays that set their elements."""


class Rates:
    """Finds the rates of steps."""

    def __init__(self, origins: Origins, counts: Counts, values: Values) -> None:
        self.origins = origins
        self.counts = counts
        self.values = values

    def of_step(self, value: ast.expr, use: Use) -> Value:
        """What `learning_rate=value` is: a function of the optimizer's own step, or a constant.

        Where it is a parameter of the function that takes the step, it is what all calls of that
        function give.

        Raises:
          Unproven: if it is neither, or made of what is not known elsewhere.
        """
        value = self.origins.expanded(value)
        step = self.counts.step(use)
        calls = self._calls(value, step) if isinstance(value, ast.Name) else []
        # train_step(optimizer, batch, schedule(optimizer.state.step))
        if calls:
            values = [self._of(given, inner, step.node) for given, inner in calls]
            return common_value(values)
        return self._of(value, step)

    def _calls(
        self,
        value: ast.Name,
        step: SeenStep,
    ) -> list[tuple[ast.expr, SeenStep]]:
        """What each call of a function gives for the rate, and the step that it takes there.

        There are none if the rate is no parameter, or the optimizer comes from elsewhere.
        """
        variable = self.origins.variable(value)
        function = self.origins.parameter(variable)
        path = step.optimizer
        if variable is None or function is None or path is None:
            return []
        if path.root.scope.node is not function:
            return []
        if not self.origins.dataflow.unchanged(path.root, function.args, step.node):
            return []
        found: list[tuple[ast.expr, SeenStep]] = []
        for binding in self.origins.bindings(function) or ():
            rate = binding.given.get(variable.name)
            optimizer = binding.given.get(path.root.name)
            if rate is None or optimizer is None:
                return []
            outer = self.origins.path(optimizer.value)
            if outer is None:
                return []
            # train_step(train.state, …), where the step is `state.optimizer.apply_gradient(…)`
            whole = Path(outer.root, (*outer.attributes, *path.attributes))
            inner = SeenStep(whole, binding.call, optimizer.value)
            found.append((self.origins.expanded(rate.value), inner))
        return found

    def _of(
        self,
        value: ast.expr,
        step: SeenStep,
        until: ast.expr | None = None,
    ) -> Value:
        """What an expression is: a constant, or a function of the step that it is read for.

        `until` is that step, if it is in another function.
        """
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
        if until is not None and not is_traceable(value, self.origins):
            raise Unproven(
                "it is computed outside of the step, by something that may need a plain number"
            )
        dataflow = self.values.facts.dataflow
        if not dataflow.stays([value], value, step.node, known=False):
            raise Unproven("what it is made of changes before the step is taken")
        if until is not None and self._is_changed_in_place(value):
            raise Unproven("what it is made of is changed in place")
        return _function_of_step(self.values.of(value, exchange), until)

    def _is_changed_in_place(self, value: ast.expr) -> bool:
        """Whether a variable is read as a whole of which elements are set: `factor[:] = 0.5`."""
        for cell in self.values.facts.dataflow.effects(value).reads:
            if not isinstance(cell, Variable):
                continue
            for load in self.origins.loads(cell):
                match cell.unit.parents.get(load):
                    # not those by name, of which each is known by itself
                    case ast.Subscript(slice=ast.Constant(value=str())):
                        continue
                    case ast.Subscript(value=owner, ctx=ast.Store()) if owner is load:
                        return True
                    case ast.AST() as parent if self._fills(parent, load):
                        return True
        return False

    def _fills(self, parent: ast.AST, array: ast.expr) -> bool:
        """Whether a call sets the elements of an array that stands in it."""
        match parent:
            # np.multiply(factor, 0.5, out=factor)
            case ast.keyword(arg="out"):
                return True
            # np.copyto(factor, other)
            case ast.Call(func=function, args=[first, *_]) if first is array:
                return self.values.facts.full_name(function) in FILL_ARRAYS
            # factor.fill(0.5)
            case ast.Attribute(attr=name):
                return name in FILLING
        return False

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
        """Whether this is `schedule(optimizer.state.step)` of an unknown `schedule`."""
        if not isinstance(node, ast.Call):
            return False
        if self.values.facts.full_name(node.func).startswith("builtins."):
            return False
        return any(ahead(one) is not None for one in values_of(node))


def _function_of_step(found: Value, until: ast.expr | None) -> Value:
    """A value with the step as a function of it: `schedule` itself, or a lambda."""
    read = found.read if until is not None else ()
    match found.expression:
        # schedule(step)
        case ast.Call(
            func=ast.Name() as function, args=[ast.Name(id="step")], keywords=[]
        ):
            return Value(function, found.parts, read, until)
    count = ast.arguments([], [ast.arg(COUNT)], None, [], [], None, [])
    return Value(ast.Lambda(count, found.expression), found.parts, read, until)
