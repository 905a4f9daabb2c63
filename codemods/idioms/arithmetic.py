"""The value of an arithmetic expression for given numbers, as XLA computes it: without errors, with infinities and NaNs."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping

from codemods.facts import Facts

Known = Callable[[ast.expr], "float | None"]

MODULES = ("jax.numpy.", "numpy.", "math.", "jax.lax.", "jax.numpy.linalg.")


class Unevaluable(Exception):  # noqa: N818 - no error: nothing is said of what it cannot evaluate
    """An expression that is more than arithmetic."""


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)


def power(left: float, right: float) -> float:
    """The first number to the power of the second."""
    try:
        found = left**right
    except OverflowError:
        return math.inf
    except ZeroDivisionError:
        return math.inf
    return found if isinstance(found, float | int) else math.nan


def _least(*values: float) -> float:
    return math.nan if any(math.isnan(value) for value in values) else min(values)


def _largest(*values: float) -> float:
    return math.nan if any(math.isnan(value) for value in values) else max(values)


def _defined(function: Callable[[float], float]) -> Callable[[float], float]:
    def guarded(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return guarded


def _chosen(condition: float, if_true: float, if_false: float) -> float:
    return if_true if condition else if_false


def _clipped(value: float, low: float, high: float) -> float:
    return _least(_largest(value, low), high)


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "minimum": _least,
    "maximum": _largest,
    "where": _chosen,
    "select": _chosen,
    "clip": _clipped,
    "sqrt": _defined(math.sqrt),
    "rsqrt": lambda value: _divided(1.0, _defined(math.sqrt)(value)),
    "cos": _defined(math.cos),
    "sin": _defined(math.sin),
    "exp": _defined(math.exp),
    "log": _defined(math.log),
    "abs": abs,
    "floor": _defined(math.floor),
    "ceil": _defined(math.ceil),
    "power": power,
    "square": lambda value: value * value,
    "float32": float,
    "asarray": float,
    "array": float,
}
BUILTINS: Mapping[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "float": float,
    "abs": abs,
    "int": lambda value: float(int(value)),
}
OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: _divided,
    ast.FloorDiv: lambda left, right: _defined(math.floor)(_divided(left, right)),
    ast.Mod: lambda left, right: left - right * math.floor(_divided(left, right)),
    ast.Pow: power,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
}


def evaluate(node: ast.expr, known: Known, facts: Facts) -> float:
    """The value of an expression, in which `known` gives the values of names and of whatever else it knows.

    Raises:
      Unevaluable: if a part is neither known nor arithmetic.
    """
    value = known(node)
    if value is not None:
        return value
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](evaluate(left, known, facts), evaluate(right, known, facts))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -evaluate(operand, known, facts)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            return float(COMPARISONS[type(op)](evaluate(left, known, facts), evaluate(right, known, facts)))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return evaluate(body if evaluate(test, known, facts) else orelse, known, facts)
        case ast.Attribute(attr="pi") if facts.full_name(node).startswith(MODULES):
            return math.pi
        case ast.Call(func=function, args=args, keywords=words):
            return _call(function, [evaluate(part, known, facts) for part in _parameters(args, words)], facts)
    raise Unevaluable


def _parameters(args: list[ast.expr], words: list[ast.keyword]) -> list[ast.expr]:
    """The arguments of a call in order, where their keywords tell the order, too."""
    if [word.arg for word in words] in ([], ["a_min", "a_max"], ["min", "max"], ["dtype"]):
        return [*args, *(word.value for word in words if word.arg != "dtype")]
    raise Unevaluable


def _call(function: ast.expr, values: list[float], facts: Facts) -> float:
    name = facts.full_name(function)
    word = name.rpartition(".")[2]
    table = BUILTINS if name.startswith("builtins.") else FUNCTIONS if name.startswith(MODULES) else {}
    if word not in table:
        raise Unevaluable
    try:
        return table[word](*values)
    except TypeError as error:
        raise Unevaluable from error
