"""Which code may be evaluated outside of its program: what can do nothing but compute."""

from __future__ import annotations

import ast
import builtins
import os
import re
from collections.abc import Collection, Iterator

import jax.numpy as jnp
import numpy as np

BUILTINS = re.compile(
    "abs|all|any|bool|complex|dict|divmod|enumerate|filter|float|frozenset|int|isinstance|len|list|map|max|min|pow|"
    "range|repr|reversed|round|set|slice|sorted|str|sum|tuple|zip"
)
METHODS = re.compile(
    "T|astype|count|endswith|get|index|items|join|keys|lower|ndim|partition|replace|reshape|rpartition|rsplit|rstrip|"
    "lstrip|shape|size|split|startswith|strip|upper|values"
)
KEPT = re.compile(
    "append|apply|apply_gradient|at|count|dtype|extend|flatten_up_to|hyper_params|hyperparams|init|init_state|inner|"
    "inner_state|iterate|key|learning_rate|max|mean|min|mu|multiply|name|nu|params|pop|step|sum|trace|transpose|unflatten|"
    "update|value|var|_replace|__init__"
)
"""Further attributes in functions and classes, of transformations and of what they keep."""

IN_CLASSES = re.compile(
    "callable|classmethod|hash|iter|next|object|property|staticmethod|super|type|[A-Za-z]+Error"
)
MODULES = re.compile(
    "jax|jnp|np|numpy|onp|math|optax|optim|functools|flax|typing|collections|dataclasses"
)
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
    rf"math\.{NAME}|(jnp|np|numpy|onp|jax\.numpy)\.({NUMBERS}|linalg\.norm)|jax\.(lax|nn)\.{NAME}"
    rf"|jax\.(tree_map|tree\.{NAME}|tree_util\.(tree_{NAME}|keystr))|functools\.partial|optim\.{NAME}"
    r"|jax\.(Array|grad|jit|tree_leaves|value_and_grad|vjp|vmap)|flax\.core\.(FrozenDict|freeze|unfreeze)"
    r"|flax\.traverse_util\.(flatten_dict|unflatten_dict|path_aware_map|ModelParamTraversal)|flax\.struct\.(dataclass|field)"
    rf"|typing\.{NAME}|collections\.(defaultdict|namedtuple|OrderedDict)|dataclasses\.(dataclass|field|replace)"
    rf"|optax\.((contrib|losses|schedules|transforms|tree|tree_utils)\.)?{NAME}"
)


def may_act(text: str) -> str | None:
    """The first thing in an expression of which it is not known that it only computes; None if all is known.

    Every name and attribute counts, not calls alone: a function that is handed over is called elsewhere. What is no name of
    Python, of this list or of the modules is left to the evaluation, which does not know it either.
    """
    return next(_unknown(ast.parse(text, mode="eval")), None)


def definitions_may_act(sources: Collection[str], known: Collection[str] = ()) -> str | None:
    """The first thing in the sources of functions and classes of which it is not known that it only computes.

    What they keep in attributes of their own making is known; a loop without an end in sight is not. Those that are `known` by
    name are not looked into.
    """
    made = [node for source in sources for node in ast.parse(source).body]
    own = frozenset(
        name
        for node in made
        for inner in ast.walk(node)
        for name in _made_by(inner)
        if not _is_of_arrays(name)
    )
    checked = (node for node in made if getattr(node, "name", "") not in known)
    return next((found for node in checked for found in _unknown(node, own)), None)


def calls_out(node: ast.AST) -> bool:
    """Whether an expression calls what is known to do more than compute, or what is not known of a module that is."""
    if isinstance(node, ast.Attribute) and MODULES.fullmatch(_root(node)):
        return not ALLOWED.fullmatch(ast.unparse(node))
    if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) or (
        isinstance(node, ast.Name) and _is_unsafe(node.id)
    ):
        return True
    return any(calls_out(child) for child in ast.iter_child_nodes(node))


def _unknown(node: ast.AST, own: frozenset[str] | None = None) -> Iterator[str]:
    """What is not known; `own` are the attributes that functions and classes make, None in an expression."""
    if isinstance(node, ast.Attribute):
        dotted = ast.unparse(node)
        if MODULES.fullmatch(_root(node)):
            if not ALLOWED.fullmatch(dotted) or not isinstance(node.ctx, ast.Load):
                yield dotted
            return
        is_kept = own is not None and (node.attr in own or KEPT.fullmatch(node.attr))
        if not (is_kept or METHODS.fullmatch(node.attr)) or not (
            isinstance(node.ctx, ast.Load) or _root(node) == "self"
        ):
            yield dotted
    elif isinstance(node, ast.Name) and _is_forbidden(node.id):
        if own is None or not IN_CLASSES.fullmatch(node.id):
            yield node.id
    elif isinstance(node, ACTING):
        yield type(node).__name__.lower()
    for child in ast.iter_child_nodes(node):
        yield from _unknown(child, own)


ACTING = (
    ast.Import,
    ast.ImportFrom,
    ast.Global,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.AsyncFor,
    ast.Await,
)
"""Statements that do more than compute, or of which it is not known that they end."""


def _made_by(node: ast.AST) -> Iterator[str]:
    """The names of fields and methods, and of attributes that are given to `self`."""
    match node:
        case (
            ast.AnnAssign(target=ast.Name(id=name))
            | ast.FunctionDef(name=name)
            | ast.ClassDef(name=name)
        ):
            yield name
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
            yield name


def _is_of_arrays(name: str) -> bool:
    """Whether modules or arrays have something of this name, which may be more than a field."""
    return name.startswith("__") or any(hasattr(home, name) for home in (np, jnp, np.ndarray, os))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_forbidden(name: str) -> bool:
    return _is_unsafe(name) or bool(MODULES.fullmatch(name)) or name.startswith("__")


def _is_unsafe(name: str) -> bool:
    return hasattr(builtins, name) and not BUILTINS.fullmatch(name)
