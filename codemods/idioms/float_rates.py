"""Whether a learning rate is a number that is injected as it is: a float, or an array of JAX.

`optax.inject_hyperparams` leaves out None and NumPy's scalars, and an integer changes its type when
a step sets another rate.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.compiled import Compiled
from codemods.analysis.facts import Facts
from codemods.analysis.naming import last_word
from codemods.analysis.origins import Origins, Variable
from codemods.inference.binding import parameters_of, values_of
from codemods.inference.objects import Class, Container, Place
from codemods.inference.scopes import Scope
from codemods.vocabulary import MAKE_ARRAY, NUMPY_FLOATS, full_names

Kinds = frozenset[str]
NONE: Kinds = frozenset()
FLOAT = frozenset(("float",))
INTEGER = frozenset(("integer",))
TYPED = frozenset(("typed",))
"""An array that is given a type."""
NUMPY = frozenset(("numpy",))
OTHER = frozenset(("other",))
UNKNOWN = frozenset(("unknown",))
NUMBERS = FLOAT | INTEGER

WHOLE = full_names("builtins", "int len round")
SAME_AS_GIVEN = full_names("builtins", "abs max min sum")
PARSED = ("type", "default")
"""What says of which kind an argument of a program is."""

PLAIN = (".item()", ".tolist()")
"""The methods that make plain numbers of those of NumPy."""


class FloatRates:
    """Tells what kinds of numbers expressions are, as far as values and annotations show."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.origins = facts.of(Origins)
        self.compiled = facts.of(Compiled)
        self._pending: set[ast.expr] = set()

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
            case ast.Call(func=function) if self.facts.full_name(function).startswith(
                NUMPY_FLOATS
            ):
                return False
        return not self.is_float(node) if is_part else self.may_be_other(node)

    def is_float(self, node: ast.expr) -> bool:
        """Whether an expression is a float for certain."""
        return self._kinds(node) == FLOAT

    def may_be_other(self, node: ast.expr) -> bool:
        """Whether something shows that a rate may be no float, or an array of a type of its own."""
        return not self._kinds(node).isdisjoint(INTEGER | TYPED | NUMPY | OTHER)

    def may_be_none(self, node: ast.expr) -> bool:
        """Whether something shows that an expression may be None, or anything else."""
        return not self._kinds(node).isdisjoint(OTHER)

    def _kinds(self, node: ast.expr) -> Kinds:
        """The kinds of all that an expression may be; what depends on itself adds none."""
        if isinstance(node, ast.Name) and self.compiled.may_be_traced(node):
            return self._traced(node)
        return self._behind(node)

    def _traced(self, name: ast.Name) -> Kinds:
        """The kinds of what JAX traces: whatever it is, it is an array."""
        del name
        return FLOAT

    def _behind(self, node: ast.expr) -> Kinds:
        if node in self._pending:
            return NONE
        self._pending.add(node)
        kinds = NONE.union(
            *map(self._at, self.flow.sources.behind(self.flow.places[node]))
        )
        self._pending.discard(node)
        return kinds

    def _all(self, nodes: Iterable[ast.expr]) -> Kinds:
        return NONE.union(*map(self._kinds, nodes))

    def _at(self, place: Place) -> Kinds:
        """The kinds at a place, beside what comes there from other places."""
        is_root = not self.flow.sources.of(place)
        match place:
            case ("variable", Scope() as scope, str(name)):
                return self._held(Variable(scope, name), is_root)
            case ("field", Class(node=cls), str(name)) if is_root:
                return FLOAT if _declares_float(cls, name) else UNKNOWN
            case ast.expr() if is_root:
                return self._made(place)
        return UNKNOWN if is_root else NONE

    def _held(self, variable: Variable, is_root: bool) -> Kinds:
        """What a parameter gets from calls that are not in view, or is declared to get."""
        cls = variable.scope.node
        # class State(NamedTuple): lr: float
        if is_root and isinstance(cls, ast.ClassDef):
            return FLOAT if _declares_float(cls, variable.name) else UNKNOWN
        function = self.origins.parameter(variable)
        if function is None:
            return UNKNOWN if is_root else NONE
        [parameter] = (
            one for one in parameters_of(function.args) if one.arg == variable.name
        )
        # train(params, **options)
        if self.flow.sources.is_given_unseen(
            self.flow.engine.functions[function], parameter
        ):
            return OTHER
        if not is_root:
            return NONE
        return FLOAT if _is_float(parameter.annotation) else UNKNOWN

    def _made(self, node: ast.expr) -> Kinds:
        """What an expression makes, by its operands or by the function that it calls."""
        match node:
            case ast.Constant(value=value):
                return _kind_of(value)
            case ast.UnaryOp(operand=operand):
                return self._kinds(operand)
            case ast.BinOp(op=operator, left=left, right=right):
                return _computed(operator, self._all((left, right)))
            # config.get("rate"), of a dict that has none
            case ast.Call(func=ast.Attribute(value=owner, attr="get")) if any(
                isinstance(item, Container) for item in self.facts.objects(owner)
            ):
                return OTHER
            # args.rate, of parser.add_argument("--rate", type=np.float32)
            case ast.Attribute(value=owner, attr=name) if self._is_numpy(owner, name):
                return NUMPY
            # rates.astype(jnp.bfloat16), but not step.astype(jnp.float32)
            case ast.Call(func=ast.Attribute(attr="astype")) if {
                *map(last_word, values_of(node))
            } != {"float32"}:
                return TYPED
            case ast.Call(func=function):
                called = {*self.facts.externals(function)}
                if not called.isdisjoint(SAME_AS_GIVEN):
                    return self._all(values_of(node))
                if not called.isdisjoint(WHOLE):
                    return INTEGER
                # jnp.asarray(0.1, jnp.bfloat16)
                if not called.isdisjoint(MAKE_ARRAY) and len(values_of(node)) > 1:
                    return TYPED
        return NONE.union(*map(_named, self.flow.origin_names(node)))

    def _is_numpy(self, owner: ast.expr, name: str) -> bool:
        """Whether argparse makes an argument a number of NumPy."""
        roots = self.flow.sources.roots(self.flow.places[owner])
        made = (root for root in roots if isinstance(root, ast.expr))
        origins = (one for root in made for one in self.flow.origin_names(root))
        if not any(one.startswith("argparse.") for one in origins):
            return False
        for call in self.flow.engine.index.called.get("add_argument", ()):
            match call:
                case ast.Call(args=[ast.Constant(value=option)], keywords=given):
                    values = [one.value for one in given if one.arg in PARSED]
                    kinds = (getattr(value, "func", value) for value in values)
                    names = map(self.facts.full_name, kinds)
                    if option == f"--{name}" and any(
                        kind.startswith(NUMPY_FLOATS) for kind in names
                    ):
                        return True
        return False


class CarriedRates(FloatRates):
    """The same for rates in the carry of a loop, whose type matters though they are traced."""

    def _traced(self, name: ast.Name) -> Kinds:
        return self._behind(name) & (INTEGER | TYPED) or FLOAT

    def _at(self, place: Place) -> Kinds:
        match place:
            # jax.lax.scan(step, optimizer, rates): each of them has the type of all
            case ("either", tuple() as places):
                return NONE.union(*map(self._at, places))
            case ("each of", whole):
                return self._at(whole)
            case ("expression", ast.expr() as node, _):
                return self._kinds(node)
        return super()._at(place)


def _kind_of(value: object) -> Kinds:
    """The kind of a constant."""
    if isinstance(value, float):
        return FLOAT
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return INTEGER if is_integer else OTHER


def _computed(operator: ast.operator, kinds: Kinds) -> Kinds:
    """What comes of an operation on numbers."""
    if not kinds <= NUMBERS:
        return kinds - NUMBERS
    is_float = isinstance(operator, ast.Div) or "float" in kinds
    return FLOAT if is_float else kinds


def _named(name: str) -> Kinds:
    """The kind of what has a full name: `numpy.linspace().max()`."""
    if name.startswith("jax.") or name in ("builtins.float", "builtins.float()"):
        return FLOAT
    is_array = name.startswith("numpy.") and not name.endswith(PLAIN)
    return NUMPY if is_array else UNKNOWN


def _declares_float(cls: ast.ClassDef, name: str) -> bool:
    """Whether a class says of a field that it is a float: `rate: float`."""
    for statement in cls.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=found), annotation=kind):
                if found == name:
                    return _is_float(kind)
    return False


def _is_float(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "float"
