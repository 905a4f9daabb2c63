"""Whether a plain number does where a program has an array with a number in it.

Most operators are the same for both. Not so `~` of a truth value, the sum of two of them, a
quotient by zero, a method, or what a function does of which nothing is known.
"""

from __future__ import annotations

import ast
from typing import Literal

from codemods.analysis.compiled import Compiled
from codemods.analysis.facts import Facts
from codemods.analysis.origins import Origins, Variable
from codemods.inference.objects import Container, Function
from codemods.sources.modules import Unit
from codemods.vocabulary import full_names

Sort = Literal["truth", "any", "natural", "positive"]
"""What is known of a number: a truth value, or its sign."""

PACKAGES = ("jax.", "numpy.", "flax.", "optax.", "math.")
"""The packages whose functions take a number wherever they take an array."""

TAKING_NUMBERS = full_names("builtins", "int float bool range str format print")
SAME_AS_GIVEN = full_names("builtins", "abs max min") | full_names(
    "jax", "block_until_ready device_get lax.stop_gradient"
)
"""Functions that give a number for a number, and an array for an array."""

BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)


class PlainNumbers:
    """Follows what is computed of a number to all places where it is used."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.origins = facts.of(Origins)
        self.compiled = facts.of(Compiled)
        self._seen: set[tuple[ast.AST, Sort]] = set()

    def do(self, node: ast.expr, unit: Unit, sort: Sort = "natural") -> bool:
        """Whether a number does in place of an array at an expression.

        Where the expression itself gets to, as a step does through dicts and calls, is not asked:
        each place where it arrives is an expression of its own.
        """
        self._seen.clear()
        return self._does(node, unit, sort)

    def is_used_up(self, node: ast.expr, unit: Unit) -> bool:
        """Whether an expression gets no further: it is compared, or made a number or a text."""
        match unit.parents.get(node):
            case ast.UnaryOp() | ast.Compare() | ast.FormattedValue():
                return True
            case ast.Call() as call:
                names = self._names(call.func)
                # int(optimizer.state.step)
                return self._tells(call, unit) or not TAKING_NUMBERS.isdisjoint(names)
        return False

    def _does(self, node: ast.expr, unit: Unit, sort: Sort) -> bool:
        if (node, sort) in self._seen:
            return True
        self._seen.add((node, sort))
        parent = unit.parents.get(node)
        match parent:
            case ast.Expr() | ast.If() | ast.While() | ast.Assert() | ast.Slice():
                return True
            # f"{step}", but not f"{step!r}"
            case ast.FormattedValue(conversion=conversion):
                return conversion != ord("r")
            case ast.IfExp(test=test) if test is node:
                return True
            # step in (0, 10)
            case ast.Compare(ops=[ast.In() | ast.NotIn() | ast.Is() | ast.IsNot()]):
                return True
            case ast.Compare():
                return self._does(parent, unit, "truth")
            case ast.UnaryOp(op=operator):
                return self._does_unary(parent, operator, unit, sort)
            case ast.BinOp():
                return self._does_binary(parent, node, unit, sort)
            case ast.BoolOp() | ast.IfExp():
                return self._does(parent, unit, _any(sort))
            # rates[step]
            case ast.Subscript(value=value):
                return value is not node or is_of_stacked(parent.slice)
            case ast.keyword():
                call = unit.parents[parent]
                return not isinstance(call, ast.Call) or self._takes(
                    call, node, unit, sort
                )
            case ast.Call() if parent.func is not node:
                return self._takes(parent, node, unit, sort)
            case ast.Attribute() | ast.Call() | ast.Starred():
                return False
        return self._moves(node, parent, unit, sort)

    def _moves(
        self, node: ast.expr, parent: ast.AST | None, unit: Unit, sort: Sort
    ) -> bool:
        """Whether a number does where an expression is given another place."""
        # metrics = {"step": optimizer.state.step}
        if self.facts.legacy_objects(node, "step"):
            return True
        match parent:
            # "%d: %f" % (step, loss)
            case ast.Tuple():
                outer = unit.parents.get(parent)
                return isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Mod)
            # [loss for loss in losses if step > 0]
            case ast.comprehension():
                return node in parent.ifs
            # step = optimizer.state.step + 1
            case (
                ast.Assign(targets=[ast.Name() as name])
                | ast.AnnAssign(target=ast.Name() as name)
            ):
                loads = self.origins.loads(self.origins.meant(name, node))
                return all(self._does(load, unit, sort) for load in loads)
        return False

    # Operators

    def _does_unary(
        self, parent: ast.UnaryOp, operator: ast.unaryop, unit: Unit, sort: Sort
    ) -> bool:
        # `not step` is a plain truth value of both
        if isinstance(operator, ast.Not):
            return True
        # ~(step > 0): ~True is -2
        if sort == "truth":
            return False
        return self._does(parent, unit, "any")

    def _does_binary(
        self, parent: ast.BinOp, node: ast.expr, unit: Unit, sort: Sort
    ) -> bool:
        is_left = parent.left is node
        other = parent.right if is_left else parent.left
        # "step %d" % step
        if isinstance(other, ast.Constant) and isinstance(other.value, str):
            return True
        number = self._number(other)
        if sort == "truth":
            return self._does_truth(parent, number, unit)
        is_positive = number is not None and number > 0
        match parent.op:
            case ast.MatMult():
                return False
            # step / warmup: an array divides by zero
            case ast.Div() | ast.FloorDiv() | ast.Mod() if is_left:
                does = bool(number)
            case ast.Div() | ast.FloorDiv() | ast.Mod():
                does = sort == "positive"
            # step ** -0.5: 0 has no such power
            case ast.Pow() if is_left:
                does = sort == "positive" or (sort == "natural" and is_positive)
            case _:
                does = True
        result = _sort(parent, is_left, sort, is_positive)
        return does and self._does(parent, unit, result)

    def _does_truth(self, parent: ast.BinOp, number: float | None, unit: Unit) -> bool:
        """Whether what is computed of a truth value is the same of one in an array."""
        # (step > 10) & (step < 20)
        if isinstance(parent.op, BITS):
            return self._does(parent, unit, "truth")
        # 0.1 * (step > 10), but not (step > 10) + (step > 20), which is one of True in JAX
        return number is not None and self._does(parent, unit, "any")

    # Calls

    def _takes(self, call: ast.Call, node: ast.expr, unit: Unit, sort: Sort) -> bool:
        """Whether a call does the same with a number as with an array."""
        if self._tells(call, unit):
            return True
        match call.func:
            # "step {}".format(step)
            case ast.Attribute(value=ast.Constant(), attr="format"):
                return True
            # optimizer.apply_gradient(grads, learning_rate=rate)
            case ast.Attribute(value=owner) if self._is_legacy(owner):
                return True
        names = self._names(call.func)
        functions = self.facts.functions(call.func)
        if names:
            return all(self._takes_by_name(name, call, unit, sort) for name in names)
        # its parameter is a place where the step arrives, or an element of a container
        if self.facts.legacy_objects(node, "step"):
            return self._puts(call.func) or any(self.facts.objects(call.func))
        return bool(functions) and all(
            self._does_as_parameter(function, call, node, sort)
            for function in functions
        )

    def _tells(self, call: ast.Call, unit: Unit) -> bool:
        """Whether a call hands numbers to code out of view, and nothing comes back."""
        # summary_writer.scalar("loss", loss, step)
        is_statement = isinstance(unit.parents.get(call), ast.Expr)
        if not is_statement or self._puts(call.func):
            return False
        return not self.facts.functions(call.func)

    def _puts(self, called: ast.expr) -> bool:
        """Whether this is a method of a container, as in `steps.append(step)`."""
        if not isinstance(called, ast.Attribute):
            return False
        owners = self.facts.objects(called.value)
        return any(isinstance(owner, Container) for owner in owners)

    def _names(self, called: ast.expr) -> set[str]:
        names = {*self.facts.externals(called), self.facts.full_name(called)}
        return names - {""}

    def _is_legacy(self, node: ast.expr) -> bool:
        return bool(self.facts.legacy_objects(node, "optimizer", "definition", "state"))

    def _takes_by_name(self, name: str, call: ast.Call, unit: Unit, sort: Sort) -> bool:
        if name in SAME_AS_GIVEN:
            return self._does(call, unit, _any(sort))
        return name in TAKING_NUMBERS or name.startswith(PACKAGES)

    def _does_as_parameter(
        self, function: Function, call: ast.Call, node: ast.expr, sort: Sort
    ) -> bool:
        """Whether a number does within a function that is called with it."""
        if self.compiled.runs_traced(function.node, function.unit):
            return True
        bindings = self.origins.bindings(function.node) or ()
        names = [
            name
            for binding in bindings
            if binding.call is call
            for name, argument in binding.given.items()
            if argument.value is node
        ]
        loads = [
            load
            for name in names
            for load in self.origins.loads(Variable(function.scope, name))
        ]
        return bool(names) and all(
            self._does(load, function.unit, sort) for load in loads
        )

    def _number(self, node: ast.expr) -> float | None:
        """The number that an expression is, also as the only value of a variable."""
        value = self.origins.value(self.origins.variable(node)) or node
        match value:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.UnaryOp(
                op=ast.USub(), operand=ast.Constant(value=int() | float() as number)
            ):
                return -number
        return None


def _any(sort: Sort) -> Sort:
    return sort if sort == "truth" else "any"


def _sort(parent: ast.BinOp, is_left: bool, sort: Sort, is_positive: bool) -> Sort:
    """What is known of the result of a sort of number and one that may be positive."""
    match parent.op:
        # 0.97 ** step
        case ast.Pow() if is_positive and not is_left:
            return "positive"
        case _ if sort == "any" or not is_positive:
            return "any"
        case ast.Add():
            return "positive"
        case ast.Mult() | ast.Pow():
            return sort
        case ast.Div() if is_left:
            return sort
        case ast.FloorDiv() | ast.Mod() if is_left:
            return "natural"
    return "any"


def is_of_stacked(index: ast.expr) -> bool:
    """Whether an index has a slice or a number: only an array with a dimension takes that.

    No number has ever been such, so the step is one of a replicated optimizer.
    """
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for part in parts:
        match part:
            # step[0], step[:1]
            case ast.Slice() | ast.Constant(value=int()):
                return True
    return False
