"""Whether one predicate over path and value holds exactly where another does not."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from codemods.analysis.origins import FunctionNode, Origins
from codemods.dataflow.pure import TEXT_METHODS
from codemods.idioms import Unproven
from codemods.inference.binding import Wrong, bind_values, signature_of

DEEPEST = 4
"""How many functions deep a predicate may be."""

OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotIn: ast.In,
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
}
"""Comparisons that are the negation of another."""

NUMBERS = re.compile(r"<value>(?!\.(dtype|ndim|shape|size)\b)")
"""What a parameter and its gradient do not have in common: optax calls the mask with both."""

TEXT = re.compile(r"""((str|tuple)\()*(<path>|'|")""")
"""How an expression begins that is a text, or a list of texts."""

Bound = dict[str, Sequence[str]]
"""What the parameters of a function are; those of `*args` are at that key."""


class Predicates:
    """Writes predicates as texts in which negations stand at the leaves alone."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def refuse_others(self, first: ast.expr, second: ast.expr) -> None:
        """Refuse two functions of path and value unless their texts are negations of each other.

        Raises:
          Unproven: if something in one of them is not known.
        """
        arguments = ["<path>", "<value>"]
        one = self._called(first, arguments, False, DEEPEST)
        if one != self._called(second, arguments, True, DEEPEST) or NUMBERS.search(one):
            raise _unknown()

    def _called(
        self, function: ast.expr, arguments: list[str], negated: bool, depth: int
    ) -> str:
        """The text of what a function, or its negation, returns for some arguments."""
        made = self.facts.functions(function)
        if len(made) != 1 or not depth:
            raise _unknown()
        node = made[0].node
        found = bind_values(signature_of(node.args), arguments, {})
        # def is_bias(path, value, name="bias")
        if isinstance(found, Wrong) or found.defaults or node.args.kwarg:
            raise _unknown()
        bound: Bound = {name: [text] for name, text in found.given.items()}
        if node.args.vararg is not None:
            bound[f"*{node.args.vararg.arg}"] = found.rest
        return self._condition(_body(node), bound, negated, depth - 1)

    def _condition(
        self, node: ast.expr, bound: Bound, negated: bool, depth: int
    ) -> str:
        """The text of a condition, or of its negation."""
        match node:
            # not path.endswith("bias")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._condition(operand, bound, not negated, depth)
            # "bias" in path or "scale" in path
            case ast.BoolOp(op=op, values=values):
                word = " and " if isinstance(op, ast.And) != negated else " or "
                parts = [self._condition(one, bound, negated, depth) for one in values]
                return f"({word.join(parts)})"
            # "bias" not in path
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                kind = OPPOSITES.get(type(op), type(op))
                compared = f"{kind.__name__}({self._values([left, right], bound)})"
                return "not " * (negated != (kind is not type(op))) + compared
            # any(name in path for name in NAMES)
            case ast.Call(
                func=ast.Name(id="any" | "all" as word) as builtin,
                args=[
                    ast.GeneratorExp(elt=element, generators=[each])
                    | ast.ListComp(elt=element, generators=[each])
                ],
                keywords=[],
            ) if self._is_builtin(builtin):
                word = "any" if (word == "any") != negated else "all"
                within = {**bound, **self._within(each, bound)}
                over = self._value(each.iter, bound)
                return f"{word}({over}, {self._condition(element, within, negated, depth)})"
            # is_bias(path), or is_bias(*args)
            case ast.Call(func=function, args=given, keywords=[]) if (
                self.facts.functions(function)
            ):
                arguments: list[str] = []
                for one in given:
                    rest = bound.get(ast.unparse(one))
                    arguments += [self._value(one, bound)] if rest is None else rest
                return self._called(function, arguments, negated, depth)
        return "not " * negated + self._value(node, bound)

    def _within(self, each: ast.comprehension, bound: Bound) -> Bound:
        """What the variable of a comprehension is."""
        # any(key == "bias" for _, key in path)
        if each.ifs or not isinstance(each.target, ast.Name):
            raise _unknown()
        # what one predicate takes from an iterator, the other does not get
        kinds = self.facts.dataflow.evaluations.kinds
        is_text = TEXT.match(self._value(each.iter, bound))
        if not is_text and not kinds.is_again(each.iter):
            raise _unknown()
        return {each.target.id: [f"<each {len(bound)}>"]}

    def _values(self, nodes: list[ast.expr], bound: Bound) -> str:
        return ", ".join(self._value(node, bound) for node in nodes)

    def _value(self, node: ast.expr, bound: Bound) -> str:
        """The text of an expression that has no parts of logic."""
        match node:
            # "bias", or path[-1]
            case (
                ast.Constant()
                | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))
            ):
                return ast.unparse(node)
            case ast.Name(id=name) if name in bound:
                return bound[name][0]
            # name in NAMES
            case ast.Name(id=name):
                variable = self.origins.variable(node)
                if variable is not None and len(self.origins.stores(variable)) == 1:
                    return f"<{name} {id(variable.scope)}>"
            # value.ndim
            case ast.Attribute(value=value, attr=name):
                return f"{self._value(value, bound)}.{name}"
            # path[0]
            case ast.Subscript(value=value, slice=key):
                return f"{self._value(value, bound)}[{self._value(key, bound)}]"
            # len(path)
            case ast.Call(
                func=ast.Name(id="len" | "str" | "tuple" as name) as function,
                args=[value],
                keywords=[],
            ) if self._is_builtin(function):
                return f"{name}({self._value(value, bound)})"
            # path.endswith("bias")
            case ast.Call(
                func=ast.Attribute(value=value, attr=name), args=given, keywords=[]
            ) if name in TEXT_METHODS:
                text = self._value(value, bound)
                # endswith of something else may do anything
                if TEXT.match(text):
                    return f"{text}.{name}({self._values(given, bound)})"
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return f"[{self._values(elements, bound)}]"
        raise _unknown()

    def _is_builtin(self, function: ast.expr) -> bool:
        return self.facts.full_name(function).startswith("builtins.")


def _body(function: FunctionNode) -> ast.expr:
    """The only expression that a function evaluates; a docstring may stand above it."""
    if isinstance(function, ast.Lambda):
        return function.body
    match function.body:
        case [ast.Return(value=ast.expr() as value)]:
            return value
        case [ast.Expr(value=ast.Constant()), ast.Return(value=ast.expr() as value)]:
            return value
    raise _unknown()


def _unknown() -> Unproven:
    return Unproven(
        "nothing shows that each parameter is in just one of its two groups"
    )
