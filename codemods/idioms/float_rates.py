"""Whether a learning rate is a number that is injected as it is: a float, or an array of JAX.

`optax.inject_hyperparams` leaves out None and NumPy's scalars, and an integer changes its type when
a step sets another rate.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.compiled import Compiled
from codemods.analysis.facts import Facts
from codemods.analysis.origins import FunctionNode, Origins, Variable
from codemods.inference.binding import parameters_of, values_of
from codemods.inference.objects import Instance
from codemods.inference.reading import parameters
from codemods.vocabulary import MAKE_ARRAY, NUMPY_FLOATS

Kinds = frozenset[str]
FLOAT = frozenset(("float",))
INTEGER = frozenset(("integer",))
OTHER = frozenset(("other",))
UNKNOWN = frozenset(("unknown",))
NUMBERS = FLOAT | INTEGER
WHOLE = frozenset(("builtins.int", "builtins.len"))


class FloatRates:
    """Tells what kinds of numbers expressions are, as far as values and annotations show."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.origins = facts.of(Origins)
        self.compiled = facts.of(Compiled)
        self._pending: set[Variable | ast.expr] = set()

    def needs_float(self, node: ast.expr, is_part: bool) -> bool:
        """Whether a rate has to be made a float: something shows that it may be none.

        Without its rate, the state of one optimizer fails at the first step. That of a group would
        not be missed, so that in the part of another definition the rate has to be a float for
        certain.
        """
        # 1, or np.float32(0.1): constructors have a form of their own for these, but for True
        match node:
            case ast.Constant(value=value):
                return isinstance(value, bool)
            case ast.Call(func=function) if self._name(function).startswith(
                NUMPY_FLOATS
            ):
                return False
        return self._kinds(node) != FLOAT if is_part else self.may_be_other(node)

    def may_be_other(self, node: ast.expr) -> bool:
        """Whether something shows that a rate may be no float, or an array of a type of its own."""
        return not self._kinds(node).isdisjoint(INTEGER | OTHER)

    def _kinds(self, node: ast.expr) -> Kinds:
        match node:
            case ast.Constant(value=value):
                return _kind_of(value)
            case ast.UnaryOp(operand=operand):
                return self._kinds(operand)
            case ast.BinOp(left=left, right=right):
                return self._computed(node, self._kinds(left) | self._kinds(right))
            case ast.IfExp(body=body, orelse=other):
                return self._kinds(body) | self._kinds(other)
            case ast.Name():
                if self.compiled.may_be_traced(node):
                    return FLOAT
                variable = self.origins.variable(node)
                return UNKNOWN if variable is None else self._held(variable)
            case ast.Attribute(value=owner, attr=name):
                return self._field(node, owner, name)
            case ast.Call():
                return self._made(node)
        return UNKNOWN

    def _computed(self, node: ast.BinOp, kinds: Kinds) -> Kinds:
        """What comes of an operation on numbers."""
        if not kinds <= NUMBERS:
            return kinds - NUMBERS
        is_float = isinstance(node.op, ast.Div) or "float" in kinds
        return FLOAT if is_float else kinds

    def _made(self, call: ast.Call) -> Kinds:
        """What a call gives."""
        name = self._name(call.func)
        # np.array(1), or jnp.asarray(0.1, jnp.bfloat16)
        has_type = name in MAKE_ARRAY and len(values_of(call)) > 1
        if name.startswith("numpy.") or has_type:
            return OTHER
        made = self.facts.externals(call.func)
        if not WHOLE.isdisjoint(made):
            return INTEGER
        is_float = name.startswith("jax.") or "builtins.float" in made
        return FLOAT if is_float else UNKNOWN

    def _name(self, function: ast.expr) -> str:
        return self.facts.full_name(function)

    def _held(self, variable: Variable) -> Kinds:
        """All that a variable gets; what depends on itself adds nothing."""
        if variable in self._pending:
            return frozenset()
        function = self.origins.parameter(variable)
        self._pending.add(variable)
        try:
            if function is not None:
                return self._given(variable, function)
            values = self.origins.values(variable)
            return self._all(values) or UNKNOWN
        finally:
            self._pending.discard(variable)

    def _given(self, variable: Variable, function: FunctionNode) -> Kinds:
        """The default of a parameter and what calls in view give, else what it is declared."""
        defaults = {one.arg: default for one, default in parameters(function)}
        default = defaults.get(variable.name)
        found = frozenset() if default is None else self._kinds(default)
        bindings = self.origins.bindings(function)
        if bindings is not None:
            given = [binding.given.get(variable.name) for binding in bindings]
            return found | self._all(one.value for one in given if one is not None)
        if _is_declared(function, variable.name):
            return found or FLOAT
        # train(params, **options)
        return OTHER if self.origins.calls(function) else found or UNKNOWN

    def _all(self, values: Iterable[ast.expr | None]) -> Kinds:
        kinds = [UNKNOWN if value is None else self._kinds(value) for value in values]
        return frozenset().union(*kinds)

    def _field(self, node: ast.Attribute, owner: ast.expr, name: str) -> Kinds:
        """What the class of its owner says of an attribute, and what code in view puts there."""
        if node in self._pending:
            return frozenset()
        items = [*self.facts.objects(owner)]
        kinds = [
            _declared_field(item.cls.node, name)
            if isinstance(item, Instance)
            else UNKNOWN
            for item in items
        ]
        place = self.facts.flow.places[node]
        roots = (one for one in self.facts.flow.roots(place) if one is not node)
        self._pending.add(node)
        given = self._all(one for one in roots if isinstance(one, ast.expr))
        self._pending.discard(node)
        return (frozenset().union(*kinds) or UNKNOWN) | (given - UNKNOWN)


def _kind_of(value: object) -> Kinds:
    """The kind of a constant."""
    if isinstance(value, float):
        return FLOAT
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return INTEGER if is_integer else OTHER


def _is_declared(function: FunctionNode, name: str) -> bool:
    declared = parameters_of(function.args)
    return any(one.arg == name and _names_float(one.annotation) for one in declared)


def _declared_field(cls: ast.ClassDef, name: str) -> Kinds:
    """What a class says of a field, as in `rate: float` or `rate: float = None`."""
    for statement in cls.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=found), annotation=kind, value=value):
                if found == name:
                    given = (
                        _kind_of(value.value)
                        if isinstance(value, ast.Constant)
                        else frozenset()
                    )
                    return given or (FLOAT if _names_float(kind) else UNKNOWN)
    return UNKNOWN


def _names_float(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "float"
