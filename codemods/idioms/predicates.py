"""Whether one predicate over path and value holds exactly where another does not."""

from __future__ import annotations

import ast

from codemods.analysis.origins import FunctionNode, Origins
from codemods.dataflow.pure import TEXT_METHODS
from codemods.inference.binding import Wrong, bind_values, signature_of

DEEPEST = 4
"""How many functions deep a predicate may be."""

OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotIn: ast.In,
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
}
"""Comparisons that are the negation of another."""

PAIRS = (("is", "not"), ("and", "or"), ("exists", "for all"))
NEGATIONS: dict[object, str] = {**dict(PAIRS), **{two: one for one, two in PAIRS}}
"""The words of forms, by those of their negations."""

OF_ARRAYS = ("dtype", "ndim", "shape", "size")
"""What a parameter and its gradient have in common: optax calls the mask with both."""

Form = tuple[object, ...]
Bindings = dict[str, Form]


class Predicates:
    """Brings predicates into a form in which negations stand at the leaves alone."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def are_opposite(self, first: ast.expr, second: ast.expr) -> bool:
        """Whether two functions of path and value are negations of each other, by their forms."""
        one = self._called(first, DEEPEST)
        other = self._called(second, DEEPEST)
        if one is None or other is None:
            return False
        return one == _negation(other) and not _asks_for_numbers(one)

    def _called(self, function: ast.expr, depth: int) -> Form | None:
        """The form of what a function returns for a path and a value."""
        made = self.facts.functions(function)
        if len(made) != 1:
            return None
        return self._applied(made[0].node, [("path",), ("value",)], depth)

    def _applied(
        self,
        function: FunctionNode,
        arguments: list[Form],
        depth: int,
    ) -> Form | None:
        """The form of what a function returns for some arguments."""
        body = _body(function)
        found = bind_values(signature_of(function.args), arguments, {})
        if body is None or not depth or isinstance(found, Wrong):
            return None
        # def is_bias(path, value, name="bias")
        if found.defaults or function.args.kwarg:
            return None
        bound: Bindings = {**found.given}
        if function.args.vararg is not None:
            bound[function.args.vararg.arg] = ("rest", *found.rest)
        return self._form(body, bound, depth - 1)

    def _form(self, node: ast.expr, bound: Bindings, depth: int) -> Form | None:
        """The form of a condition."""
        match node:
            # not path.endswith("bias")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._form(operand, bound, depth)
                return None if inner is None else _negation(inner)
            # "bias" in path or "scale" in path
            case ast.BoolOp(op=op, values=values):
                parts = [self._form(value, bound, depth) for value in values]
                word = "and" if isinstance(op, ast.And) else "or"
                return None if None in parts else (word, *parts)
            # "bias" not in path
            case ast.Compare(left=first, ops=[op], comparators=[second]):
                left, right = self._value(first, bound), self._value(second, bound)
                if left is None or right is None:
                    return None
                opposite = OPPOSITES.get(type(op))
                form = ("is", (opposite or type(op)).__name__, left, right)
                return form if opposite is None else _negation(form)
            # any(name in path for name in NAMES)
            case ast.Call(
                func=ast.Name(id="any" | "all" as word) as builtin,
                args=[(ast.GeneratorExp() | ast.ListComp()) as each],
                keywords=[],
            ) if self._is_builtin(builtin):
                return self._quantified(word, each, bound, depth)
            # is_bias(path)
            case ast.Call(func=function, args=given, keywords=[]):
                return self._inner_call(function, given, bound, depth)
        return self._leaf(node, bound)

    def _quantified(
        self,
        word: str,
        each: ast.GeneratorExp | ast.ListComp,
        bound: Bindings,
        depth: int,
    ) -> Form | None:
        """The form of `any(…)` or `all(…)` of the elements of one iterable."""
        generator = each.generators[0]
        if len(each.generators) != 1 or generator.ifs:
            return None
        # any(key == "bias" for _, key in path)
        if not isinstance(generator.target, ast.Name):
            return None
        over = self._value(generator.iter, bound)
        kinds = self.facts.dataflow.evaluations.kinds
        # what one predicate takes from an iterator, the other does not get
        if not _is_text(over) and not kinds.is_again(generator.iter):
            return None
        within = {**bound, generator.target.id: ("each", len(bound))}
        inner = self._form(each.elt, within, depth)
        if over is None or inner is None:
            return None
        return ("exists" if word == "any" else "for all", over, inner)

    def _inner_call(
        self,
        function: ast.expr,
        given: list[ast.expr],
        bound: Bindings,
        depth: int,
    ) -> Form | None:
        """The form of what a function of the project returns within a predicate."""
        made = self.facts.functions(function)
        if len(made) != 1:
            return self._leaf(ast.Call(function, given, []), bound)
        arguments: list[Form] = []
        for argument in given:
            match argument:
                # is_bias(*args)
                case ast.Starred(value=ast.Name(id=name)):
                    word, *rest = bound.get(name, (None,))
                    if word != "rest":
                        return None
                    arguments += [part for part in rest if isinstance(part, tuple)]
                case _:
                    value = self._value(argument, bound)
                    if value is None:
                        return None
                    arguments.append(value)
        return self._applied(made[0].node, arguments, depth)

    def _leaf(self, node: ast.expr, bound: Bindings) -> Form | None:
        """The form of a condition that has no parts of logic."""
        value = self._value(node, bound)
        return None if value is None else ("is", value)

    def _value(self, node: ast.expr, bound: Bindings) -> Form | None:
        """The form of an expression that has no parts of logic."""
        match node:
            case ast.Constant(value=value):
                return ("constant", type(value).__name__, value)
            # path[-1]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return ("constant", "int", -number)
            case ast.Name(id=name) if name in bound:
                return bound[name]
            # name in NAMES
            case ast.Name():
                variable = self.origins.variable(node)
                if len(self.origins.stores(variable)) != 1:
                    return None
                return ("variable", variable)
            # value.ndim
            case ast.Attribute(value=value, attr=name):
                inner = self._value(value, bound)
                return None if inner is None else ("attribute", inner, name)
            # path[0]
            case ast.Subscript(value=value, slice=key):
                pair = (self._value(value, bound), self._value(key, bound))
                return None if None in pair else ("item", *pair)
            # len(path)
            case ast.Call(
                func=ast.Name(id="len" | "str" | "tuple" as name) as function,
                args=[value],
                keywords=[],
            ):
                if not self._is_builtin(function):
                    return None
                inner = self._value(value, bound)
                return None if inner is None else (name, inner)
            # path.endswith("bias")
            case ast.Call(
                func=ast.Attribute(value=value, attr=name), args=given, keywords=[]
            ) if name in TEXT_METHODS:
                parts = [self._value(part, bound) for part in (value, *given)]
                # endswith of something else may do anything
                if None in parts or not _is_text(parts[0]):
                    return None
                return ("method", name, *parts)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                parts = [self._value(element, bound) for element in elements]
                return None if None in parts else ("sequence", *parts)
        return None

    def _is_builtin(self, function: ast.expr) -> bool:
        return self.facts.full_name(function).startswith("builtins.")


def _negation(form: Form) -> Form:
    """The form of `not` a condition; in a form, negations stand at the leaves alone."""
    word, *parts = form
    # how many parts are values, which stay: all of a leaf, what a quantifier goes over
    kept = {"and": 0, "or": 0, "exists": 1, "for all": 1}.get(str(word), len(parts))
    inner = (_negation(part) for part in parts[kept:] if isinstance(part, tuple))
    return (NEGATIONS[word], *parts[:kept], *inner)


def _asks_for_numbers(form: object) -> bool:
    """Whether a form depends on more of a value than a parameter and its gradient share."""
    match form:
        case ("value",):
            return True
        case ("attribute", ("value",), name):
            return name not in OF_ARRAYS
        case tuple():
            return any(_asks_for_numbers(part) for part in form)
    return False


def _is_text(form: object) -> bool:
    """Whether a form is that of text, or of a list of texts.

    That is a path, a constant, or what a method or index of one gives.
    """
    match form:
        case ("path",) | ("constant", "str", _):
            return True
        case ("method", _, inner, *_) | ("item", inner, _) | ("str" | "tuple", inner):
            return _is_text(inner)
    return False


def _body(function: FunctionNode) -> ast.expr | None:
    """The only expression that a function evaluates; a docstring may stand above it."""
    if isinstance(function, ast.Lambda):
        return function.body
    statements = function.body
    match statements:
        case [ast.Expr(value=ast.Constant()), *others]:
            statements = others
    only = statements[0] if len(statements) == 1 else None
    return only.value if isinstance(only, ast.Return) else None
