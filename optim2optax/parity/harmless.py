"""Which expressions may be evaluated outside of their program: those that can do nothing but compute."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

BUILTINS = re.compile(
    "abs|all|any|bool|complex|dict|divmod|enumerate|filter|float|frozenset|int|isinstance|len|list|map|max|min|pow|"
    "range|repr|reversed|round|set|slice|sorted|str|sum|tuple|zip"
)
METHODS = re.compile(
    "T|astype|count|endswith|get|index|items|join|keys|lower|ndim|partition|replace|reshape|rpartition|rsplit|rstrip|"
    "lstrip|shape|size|split|startswith|strip|upper|values"
)
MODULES = re.compile("jax|jnp|np|numpy|onp|math|optax|optim|functools")
NUMBERS = (
    "abs|absolute|add|all|any|arange|array|arccos|arcsin|arctan|arctan2|asarray|bfloat16|bool_|ceil|clip|concatenate|"
    "cos|cosh|cumprod|cumsum|divide|double|e|equal|exp|exp2|expm1|finfo|float16|float32|float64|floor|floor_divide|"
    "full|full_like|greater|greater_equal|hypot|inf|int16|int32|int64|int8|interp|isfinite|isinf|isnan|less|"
    "less_equal|linspace|log|log10|log1p|log2|logical_and|logical_not|logical_or|logspace|max|maximum|mean|min|"
    "minimum|mod|multiply|nan|ndim|negative|newaxis|not_equal|ones|ones_like|outer|pi|piecewise|power|prod|"
    "reciprocal|remainder|reshape|round|searchsorted|select|shape|sign|sin|sinh|sqrt|square|squeeze|stack|std|"
    "subtract|sum|tan|tanh|true_divide|uint32|uint8|var|where|zeros|zeros_like"
)
NAME = "[a-zA-Z][a-zA-Z0-9_]*"
ALLOWED = re.compile(
    rf"math\.{NAME}|(jnp|np|numpy|onp|jax\.numpy)\.({NUMBERS})|jax\.(lax|nn)\.{NAME}"
    rf"|jax\.(tree_map|tree\.{NAME}|tree_util\.(tree_{NAME}|keystr))|functools\.partial|optim\.{NAME}"
    rf"|optax\.((contrib|losses|schedules|transforms|tree|tree_utils)\.)?{NAME}"
)


def may_act(text: str) -> str | None:
    """The first thing in an expression of which it is not known that it only computes; None if all is known.

    Every name and attribute counts, not calls alone: a function that is handed over is called elsewhere. What is no name of
    Python, of this list or of the modules is left to the evaluation, which does not know it either.
    """
    return next(_unknown(ast.parse(text, mode="eval")), None)


def _unknown(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        dotted = ast.unparse(node)
        if MODULES.fullmatch(_root(node)):
            if not ALLOWED.fullmatch(dotted):
                yield dotted
            return
        if not METHODS.fullmatch(node.attr):
            yield dotted
    elif isinstance(node, ast.Name) and _is_forbidden(node.id):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _unknown(child)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_forbidden(name: str) -> bool:
    is_unsafe = hasattr(builtins, name) and not BUILTINS.fullmatch(name)
    return is_unsafe or bool(MODULES.fullmatch(name)) or name.startswith("__")
