"""Whether a plain number does where a program has an array with a number in it.

Most operators are the same for both. Not so `~` of a truth value, the sum of two of them, a
quotient by zero, a method, or what a function does of which nothing is known.
"""

from __future__ import annotations

import ast

from codemods.analysis.compiled import Compiled
from codemods.analysis.facts import Facts
from codemods.analysis.origins import Origins, Variable
from codemods.dataflow.program import functions_in
from codemods.inference.objects import Container, Function
from codemods.sources.modules import Unit
from codemods.vocabulary import UNSIGNED, full_names

PACKAGES = ("jax.", "numpy.", "flax.", "optax.", "math.")
"""The packages whose functions take a number wherever they take an array."""

TAKING_NUMBERS = full_names("builtins", "int float bool range str format print")
SAME_AS_GIVEN = full_names("builtins", "abs max min") | full_names(
    "jax", "block_until_ready device_get lax.stop_gradient"
)
"""Functions that give a number for a number, and an array for an array."""

LARGEST = 2**16
"""The largest number whose products with steps are in the range of an array's numbers."""

SQUARE = 2
"""The largest whole exponent whose powers of steps are in the range of an array's numbers."""


class PlainNumbers:
    """Follows what is computed of a number to all places where it is used."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.origins = facts.of(Origins)
        self.compiled = facts.of(Compiled)
        self._seen: set[tuple[ast.AST, bool]] = set()
        self._may_return = False

    def do(self, node: ast.expr, unit: Unit, may_return: bool = False) -> bool:
        """Whether a number does in place of an array at an expression.

        Where the expression itself gets to, as a step does through dicts and calls, is not asked:
        each place where it arrives is an expression of its own. Nor is it of what is computed, if
        the function around it `may_return` that.
        """
        self._seen.clear()
        self._may_return = may_return
        return self._does(node, unit)

    def is_used_up(self, node: ast.expr, unit: Unit) -> bool:
        """Whether an expression gets no further: it is compared, or made a number or a text."""
        match unit.parents.get(node):
            case ast.UnaryOp() | ast.Compare() | ast.FormattedValue():
                return True
            # step % 100 == 0
            case ast.BinOp() as computed:
                return self.is_used_up(computed, unit)
            case ast.Call() as call:
                names = self.facts.names(call.func)
                # int(optimizer.state.step)
                return self._tells(call, unit) or not TAKING_NUMBERS.isdisjoint(names)
        return False

    def _does(self, node: ast.expr, unit: Unit, is_truth: bool = False) -> bool:
        if (node, is_truth) in self._seen:
            return True
        self._seen.add((node, is_truth))
        match unit.parents.get(node):
            case ast.Expr() | ast.If() | ast.While() | ast.Assert() | ast.Slice():
                return True
            # f"{step}", but not f"{step!r}"
            case ast.FormattedValue(conversion=conversion):
                return conversion != ord("r")
            # step in (0, 10); `not step` is a plain truth value of both
            case (
                ast.Compare(ops=[ast.In() | ast.NotIn() | ast.Is() | ast.IsNot()])
                | ast.UnaryOp(op=ast.Not())
            ):
                return True
            case ast.Compare() as parent:
                return self._does(parent, unit, is_truth=True)
            # ~(step > 0): ~True is -2
            case ast.UnaryOp() as parent:
                return not is_truth and self._does(parent, unit)
            case ast.BinOp() as parent:
                return self._does_binary(parent, node, unit, is_truth)
            case ast.BoolOp() | ast.IfExp() as parent:
                is_test = isinstance(parent, ast.IfExp) and parent.test is node
                return is_test or self._does(parent, unit, is_truth)
            # rates[step]
            case ast.Subscript(value=value, slice=index):
                return value is not node or is_of_stacked(index)
            case ast.keyword() as word:
                call = unit.parents[word]
                return not isinstance(call, ast.Call) or self._takes(
                    call, node, unit, is_truth
                )
            case ast.Call() as call:
                is_given = call.func is not node
                return is_given and self._takes(call, node, unit, is_truth)
            case ast.Lambda() | ast.Return() if self._may_return:
                return True
            # jax.device_put_sharded(count * [leaf], devices)
            case ast.Tuple() | ast.List() | ast.Starred() as parent if self._may_return:
                return self._does(parent, unit, is_truth)
            case ast.Attribute() | ast.Starred():
                return False
        return self._moves(node, unit, is_truth)

    def _moves(self, node: ast.expr, unit: Unit, is_truth: bool) -> bool:
        """Whether a number does where an expression is given another place."""
        # metrics = {"step": optimizer.state.step}
        if self.facts.legacy_objects(node, "step"):
            return True
        match unit.parents.get(node):
            # "%d: %f" % (step, loss)
            case ast.Tuple() as parent:
                outer = unit.parents.get(parent)
                return isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Mod)
            # [loss for loss in losses if step > 0]
            case ast.comprehension(ifs=conditions):
                return node in conditions
            # step = optimizer.state.step + 1
            case (
                ast.Assign(targets=[ast.Name() as name])
                | ast.AnnAssign(target=ast.Name() as name)
            ):
                loads = self.origins.loads(self.origins.meant(name, node))
                return all(self._does(load, unit, is_truth) for load in loads)
        return False

    def _does_binary(
        self, parent: ast.BinOp, node: ast.expr, unit: Unit, is_truth: bool
    ) -> bool:
        is_left = parent.left is node
        other = parent.right if is_left else parent.left
        # "step %d" % step
        if isinstance(other, ast.Constant) and isinstance(other.value, str):
            return True
        match parent.op:
            # (step > 10) & (step < 20)
            case ast.BitAnd() | ast.BitOr() | ast.BitXor() if is_truth:
                return self._does(parent, unit, is_truth)
            case ast.MatMult():
                return False
            # step // period: no whole quotient by zero is of any use
            case ast.FloorDiv() | ast.Mod() if is_left:
                does = self._number(other) != 0
            # step / warmup, 1.0 / step: an array divides by zero
            case ast.Div() | ast.FloorDiv() | ast.Mod():
                does = bool(self._number(other)) if is_left else self._is_positive(node)
            # step ** -0.5: 0 has no such power, and (step - 5) ** 0.5 is complex; step ** 40 is too
            # large for an array
            case ast.Pow() if is_left:
                power = self._number(other) or 0
                is_real = self._is_step(node) or isinstance(power, int)
                is_large = power > SQUARE and power % 1 == 0
                is_power = (power > 0 and is_real) or self._is_positive(node)
                does = is_power and not is_large
            # 2 ** step: no array has such numbers
            case ast.Pow():
                does = not isinstance(self._number(other), int)
            # step * 1103515245, as hashes are computed
            case ast.Mult() if abs(self._number(other) or 0) > LARGEST:
                does = False
            # 0.1 * (step > 10), but not (step > 10) + (step > 20), which is one of True in JAX
            case _:
                does = not is_truth or self._number(other) is not None
        return does and self._does(parent, unit)

    def _is_step(self, node: ast.expr) -> bool:
        """Whether this is a step as it is counted, with which nothing was computed."""
        value = self.origins.value(self.origins.variable(node)) or node
        is_read = isinstance(value, ast.Attribute) and value.attr == "step"
        return is_read and bool(self.facts.legacy_objects(value, "step"))

    def _is_positive(self, node: ast.expr) -> bool:
        """Whether a number, or what is computed of a step, is more than 0 for sure."""
        match node:
            # step + 1
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._is_positive(left) or self._is_positive(right)
            # 0.97 ** step, (step + 1) ** 0.5
            case ast.BinOp(op=ast.Pow(), left=base):
                return self._is_positive(base)
        return (self._number(node) or 0) > 0

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

    def _is_reduced(self, node: ast.expr) -> bool:
        """Whether something is taken away from a step, so that it may be below zero."""
        value = self.origins.value(self.origins.variable(node)) or node
        return any(isinstance(part, ast.Sub | ast.USub) for part in ast.walk(value))

    # Calls

    def _takes(
        self, call: ast.Call, node: ast.expr, unit: Unit, is_truth: bool
    ) -> bool:
        """Whether a call does the same with a number as with an array."""
        if self._tells(call, unit):
            return True
        match call.func:
            # "step {}".format(step)
            case ast.Attribute(value=ast.Constant(), attr="format"):
                return True
            # optimizer.apply_gradient(grads, learning_rate=rate)
            case ast.Attribute(value=owner) if self.facts.legacy_objects(
                owner, "optimizer", "definition", "state"
            ):
                return True
        names = self.facts.names(call.func)
        # jax.random.fold_in(key, step - 1)
        if not names.isdisjoint(UNSIGNED) and self._is_reduced(node):
            return False
        if not names.isdisjoint(SAME_AS_GIVEN) and not self._does(call, unit, is_truth):
            return False
        if names:
            rest = names - SAME_AS_GIVEN - TAKING_NUMBERS
            return all(name.startswith(PACKAGES) for name in rest)
        # its parameter is a place where the step arrives, or an element of a container
        if self.facts.legacy_objects(node, "step"):
            return self._puts(call.func) or any(self.facts.objects(call.func))
        functions = self.facts.functions(call.func)
        return bool(functions) and all(
            self._does_within(function, call, node, is_truth) for function in functions
        )

    def _tells(self, call: ast.Call, unit: Unit) -> bool:
        """Whether a call hands numbers to code out of view, and nothing comes back."""
        # summary_writer.scalar("loss", loss, step)
        is_statement = isinstance(unit.parents.get(call), ast.Expr)
        items = self.facts.objects(call.func)
        is_in_view = self._puts(call.func) or any(functions_in(items))
        return is_statement and not is_in_view

    def _puts(self, called: ast.expr) -> bool:
        """Whether this is a method of a container, as in `steps.append(step)`."""
        if not isinstance(called, ast.Attribute):
            return False
        owners = self.facts.objects(called.value)
        return any(isinstance(owner, Container) for owner in owners)

    def _does_within(
        self, function: Function, call: ast.Call, node: ast.expr, is_truth: bool
    ) -> bool:
        """Whether a number does within a function that is called with it."""
        if self.compiled.runs_traced(function.node, function.unit):
            return True
        parameters = [
            Variable(function.scope, name)
            for binding in self.origins.bindings(function.node) or ()
            for name, argument in binding.given.items()
            if binding.call is call and argument.value is node
        ]
        loads = [load for one in parameters for load in self.origins.loads(one)]
        return bool(parameters) and all(
            self._does(load, function.unit, is_truth) for load in loads
        )


def is_of_stacked(index: ast.expr) -> bool:
    """Whether an index has a slice or a number: only an array with a dimension takes that.

    No number has ever been such, so the step is one of a replicated optimizer.
    """
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    # step[0], step[:1]
    return any(
        isinstance(part, ast.Slice)
        or (isinstance(part, ast.Constant) and isinstance(part.value, int))
        for part in parts
    )
