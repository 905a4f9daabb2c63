"""What loops do by hand around a step that optax does in another way: it stays, with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.origins import (
    FunctionNode,
    Origins,
    function_of,
    names_read,
    statement_of,
)
from codemods.analysis.uses import Use
from codemods.inference.objects import Derivative, Function
from codemods.messages import message
from codemods.model import Location, Message
from codemods.sources.modules import Unit
from codemods.vocabulary import ADD, BRANCH, DIFFERENTIATE, IS_FINITE, MAP_TREES, SELECT


class NearMisses:
    """Finds what stays around a step, and why."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def reasons(self, use: Use) -> Iterator[Message]:
        """A sentence for each construct that stays around a step."""
        outermost = self._outermost(use)
        if outermost is None:
            return
        if (place := self._changed_behind(use)) is not None:
            yield message(
                "The parameters are changed after this step, at {}, and not by a link of the "
                "chain: this code acts on the result of the step, `optax.add_decayed_weights` on "
                "the parameters before it.",
                place,
            )
        if (place := self._added_up(use, outermost)) is not None:
            yield message(
                "The gradients are added up at {}, and not by `optax.MultiSteps`: that is called "
                "for each part, and a train state would count the parts as steps.",
                place,
            )
        if (place := self._guarded(use, outermost)) is not None:
            yield message(
                "This step is skipped at {} if values are not finite, and not by "
                "`optax.apply_if_finite`: that gives up after `max_consecutive_errors`, and a "
                "train state would count the skipped steps.",
                place,
            )

    # Decay, and whatever else acts on the parameters

    @cached_property
    def _replacements(self) -> list[tuple[Use, ast.expr]]:
        """Where an optimizer gets parameters that are computed from its own."""
        found: list[tuple[Use, ast.expr]] = []
        for use in self.facts.uses:
            call = use.call
            if use.kind == "optimizer.replace" and call is not None:
                targets = (word.value for word in call.keywords if word.arg == "target")
                found += ((use, target) for target in targets)
        return found

    def _changed_behind(self, use: Use) -> Location | None:
        """Where the parameters of an optimizer are changed after a step in the same function.

        That is `optimizer = optimizer.replace(target=decayed(optimizer.target))`.
        """
        is_before = self.facts.dataflow.is_before
        function = function_of(use.unit, use.node)
        objects = {*use.objects}
        reads = (one for one in self.facts.uses if one.kind == "optimizer.target")
        targets = {one.node for one in reads if not objects.isdisjoint(one.objects)}
        for other, value in self._replacements:
            if other.unit is not use.unit or objects.isdisjoint(other.objects):
                continue
            if function_of(other.unit, other.node) is not function:
                continue
            if not is_before(use.node, other.node):
                continue
            read = targets & {*ast.walk(self.origins.expanded(value))}
            if any(is_before(use.node, node) for node in read):
                return other.location
        return None

    # Accumulation

    def _added_up(self, use: Use, outermost: FunctionNode) -> Location | None:
        """Where gradients are added up around a step."""
        for unit, function in self._in_reach(use, outermost):
            for node in ast.walk(function):
                if not isinstance(node, ast.Call) or not self._is_addition(node):
                    continue
                if self._adds_to_a_sum(node, unit):
                    return unit.location(node.lineno)
        return None

    def _adds_to_a_sum(self, call: ast.Call, unit: Unit) -> bool:
        """Whether one of two trees is a gradient, and the other their sum so far."""
        gradients = [self._is_gradient(tree) for tree in call.args[1:]]
        if not all(gradients):
            return any(gradients)
        match statement_of(unit, call):
            # grads = jax.tree_map(jnp.add, grads, more_grads)
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name in {
                    tree.id for tree in call.args[1:] if isinstance(tree, ast.Name)
                }
        return False

    def _is_addition(self, call: ast.Call) -> bool:
        """Whether a call adds up two trees."""
        if len(call.args) != 3 or self.facts.full_name(call.func) not in MAP_TREES:
            return False
        match call.args[0]:
            # lambda a, b: a + b
            case ast.Lambda(
                args=ast.arguments(args=[first, second]),
                body=ast.BinOp(
                    left=ast.Name(id=left), op=ast.Add(), right=ast.Name(id=right)
                ),
            ):
                return {first.arg, second.arg} == {left, right}
            # jnp.add
            case function:
                return self.facts.full_name(function) in ADD

    def _is_gradient(self, node: ast.expr) -> bool:
        """Whether an expression is what a function made by `jax.grad` and the like returns."""
        variable = self.origins.variable(node)
        if variable is None:
            return self._is_derivative(node)
        for store in self.origins.stores(variable):
            if isinstance(store, ast.Name):
                setting = statement_of(variable.unit, store)
                if isinstance(setting, ast.Assign) and self._is_derivative(
                    setting.value
                ):
                    return True
        return False

    def _is_derivative(self, node: ast.expr) -> bool:
        """Whether an expression is `jax.grad(loss)(params)`, or a call of what such a call made."""
        if not isinstance(node, ast.Call):
            return False
        match self.origins.expanded(node.func):
            case ast.Call(func=function) if (
                self.facts.full_name(function) in DIFFERENTIATE
            ):
                return True
        return any(
            isinstance(item, Derivative) for item in self.facts.objects(node.func)
        )

    # Guards

    def _guarded(self, use: Use, outermost: FunctionNode) -> Location | None:
        """Where a test whether numbers are finite decides on a step."""
        for condition in self._conditions(use, outermost):
            if self._tests_finite(condition, set()):
                return use.unit.location(condition.lineno)
        return None

    def _conditions(self, use: Use, outermost: FunctionNode) -> Iterator[ast.expr]:
        """The conditions that decide on whether a step, or its result, is taken."""
        node: ast.AST = use.node
        functions: set[str] = set()
        while node is not outermost:
            parent = use.unit.parents[node]
            match parent:
                # if jnp.isfinite(loss): optimizer = …
                case ast.If(test=test) if node is not test:
                    yield test
                # jax.lax.cond(finite, lambda: optimizer.apply_gradient(grads), …)
                case ast.Call(func=function, args=[condition, *_]) if (
                    node is not function
                ):
                    if self.facts.full_name(function) in BRANCH:
                        yield condition
            if isinstance(node, ast.FunctionDef):
                functions.add(node.name)
            node = parent
        results = _names_set(statement_of(use.unit, use.node))
        for call in _calls_in(outermost):
            read = {name.id for name in names_read(call.args[1:])}
            name = self.facts.full_name(call.func)
            # jax.lax.cond(finite, take_step, skip_step, optimizer)
            if call.args and name in BRANCH and functions & read:
                yield call.args[0]
            # jax.tree_map(partial(jnp.where, finite), new_optimizer, optimizer)
            if call.args and name in MAP_TREES and results & read:
                yield from self._selections(call.args[0])

    def _selections(self, function: ast.expr) -> Iterator[ast.expr]:
        """The condition of a function that takes one of two leaves."""
        match function:
            # lambda new, old: jnp.where(finite, new, old), or partial(jnp.where, finite)
            case (
                ast.Lambda(body=ast.Call(func=chosen, args=[condition, _, _]))
                | ast.Call(args=[chosen, condition])
            ):
                if self.facts.full_name(chosen) in SELECT:
                    yield condition

    def _tests_finite(self, node: ast.AST, seen: set[ast.AST]) -> bool:
        """Whether an expression, or a function that it calls, tests whether numbers are finite."""
        if node in seen:
            return False
        seen.add(node)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                if self.facts.full_name(inner.func) in IS_FINITE:
                    return True
                made = self.facts.functions(inner.func)
                if any(self._tests_finite(function.node, seen) for function in made):
                    return True
            value = self.origins.local_value(inner)
            if value is not None and self._tests_finite(value, seen):
                return True
        return False

    # The code around a step

    @staticmethod
    def _outermost(use: Use) -> FunctionNode | None:
        """The function that a step is part of, however deep; None outside of all functions."""
        outer = [
            node
            for node in use.unit.ancestors(use.node)
            if isinstance(node, FunctionNode)
        ]
        return outer[-1] if outer else None

    def _in_reach(
        self,
        use: Use,
        outermost: FunctionNode,
    ) -> Iterator[tuple[Unit, FunctionNode]]:
        """A function, and those of the project that it calls."""
        yield use.unit, outermost
        for call in _calls_in(outermost):
            for item in self.facts.objects(call.func):
                if isinstance(item, Function) and item.node is not outermost:
                    yield item.unit, item.node


def _calls_in(function: FunctionNode) -> Iterator[ast.Call]:
    return (inner for inner in ast.walk(function) if isinstance(inner, ast.Call))


def _names_set(statement: ast.stmt) -> set[str]:
    """The names that a statement sets."""
    names = (inner for inner in ast.walk(statement) if isinstance(inner, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}
