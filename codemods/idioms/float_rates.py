"""Whether a learning rate is a number that is injected as it is: a float, or an array of JAX.

`optax.inject_hyperparams` leaves out None and NumPy's scalars, and an integer changes its type when
a step sets another rate.
"""

from __future__ import annotations

import ast

from codemods.analysis.compiled import Compiled
from codemods.analysis.facts import Facts
from codemods.analysis.origins import FunctionNode, Origins, Variable
from codemods.inference.binding import parameters_of
from codemods.inference.objects import Instance
from codemods.inference.reading import parameters
from codemods.vocabulary import FLOATS

WHOLE = frozenset(("builtins.int", "builtins.len"))


class FloatRates:
    """Tells which expressions are such numbers, as far as values and annotations show."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.origins = facts.of(Origins)
        self.compiled = facts.of(Compiled)
        self._pending: set[Variable] = set()

    def is_sure(self, node: ast.expr) -> bool:
        """Whether an expression is a float, a literal, or an array of JAX."""
        match node:
            # constructors have a form of their own for these
            case ast.Constant():
                return True
            case ast.UnaryOp(operand=operand):
                return self.is_sure(operand)
            case ast.BinOp(left=left, right=right):
                return self._is_computed(node, left, right)
            case ast.IfExp(body=body, orelse=other):
                return self._is_float(body) and self._is_float(other)
            case ast.Name():
                return self.compiled.may_be_traced(node) or self._is_float(node)
            case ast.Attribute(value=owner, attr=name):
                return self._is_field(owner, name)
            # np.float32(0.1) has a form of its own, too
            case ast.Call(func=function):
                made = self.facts.full_name(function)
                return made.startswith(FLOATS) or self._is_float(node)
        return False

    def _is_computed(self, node: ast.BinOp, left: ast.expr, right: ast.expr) -> bool:
        if not (self._is_number(left) and self._is_number(right)):
            return False
        is_quotient = isinstance(node.op, ast.Div)
        return is_quotient or self._is_float(left) or self._is_float(right)

    def _is_number(self, node: ast.expr) -> bool:
        value = self.origins.value(self.origins.variable(node)) or node
        match value:
            case ast.Constant(value=int()):
                return True
            # 0.4 / len(batch)
            case ast.Call(func=function):
                made = self.facts.externals(function)
                return not WHOLE.isdisjoint(made) or self._is_float(node)
        return self._is_float(node)

    def _is_float(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return isinstance(value, float)
            case ast.Name():
                variable = self.origins.variable(node)
                return variable is not None and self._holds_floats(variable)
            case ast.Call(func=function):
                return "builtins.float" in self.facts.externals(function)
        return self.is_sure(node)

    def _holds_floats(self, variable: Variable) -> bool:
        """Whether all that a variable gets is a float; what depends on itself adds nothing."""
        if variable in self._pending:
            return True
        function = self.origins.parameter(variable)
        self._pending.add(variable)
        try:
            if function is not None:
                return self._is_float_parameter(variable, function)
            values = self.origins.values(variable)
            return bool(values) and all(
                value is not None and self._is_float(value) for value in values
            )
        finally:
            self._pending.discard(variable)

    def _is_float_parameter(self, variable: Variable, function: FunctionNode) -> bool:
        """Whether calls in view and the default are floats; else whether it is declared one."""
        defaults = {one.arg: default for one, default in parameters(function)}
        default = defaults.get(variable.name)
        if default is not None and not self._is_float(default):
            return False
        bindings = self.origins.bindings(function)
        if bindings is None:
            return default is not None or _is_declared(function, variable.name)
        given = [binding.given.get(variable.name) for binding in bindings]
        return all(one is None or self._is_float(one.value) for one in given)

    def _is_field(self, owner: ast.expr, name: str) -> bool:
        """Whether an attribute is declared a float by the class of its owner."""
        items = [*self.facts.objects(owner)]
        return bool(items) and all(
            isinstance(item, Instance) and _is_float_field(item.cls.node, name)
            for item in items
        )


def _is_declared(function: FunctionNode, name: str) -> bool:
    declared = parameters_of(function.args)
    return any(one.arg == name and _names_float(one.annotation) for one in declared)


def _is_float_field(cls: ast.ClassDef, name: str) -> bool:
    """Whether a class has `rate: float`, and no default that is something else."""
    for statement in cls.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=found), annotation=kind, value=value):
                if found == name:
                    is_none = isinstance(value, ast.Constant) and not isinstance(
                        value.value, float
                    )
                    return _names_float(kind) and not is_none
    return False


def _names_float(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "float"
