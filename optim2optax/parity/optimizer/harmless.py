"""Which code may be evaluated outside of its program: code that can only compute."""

from __future__ import annotations

import ast
import builtins
import os
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

import jax.numpy as jnp
import numpy as np

from optim2optax.parity.optimizer.sampling import KNOWN_MODULES

BUILTINS = re.compile(
    "abs|all|any|bool|complex|dict|divmod|enumerate|filter|float|frozenset|int|isinstance|len|"
    "list|map|max|min|pow|range|repr|reversed|round|set|slice|sorted|str|sum|tuple|zip"
)
METHODS = re.compile(
    "T|astype|count|endswith|get|index|items|join|keys|lower|ndim|partition|replace|reshape|"
    "rpartition|rsplit|rstrip|lstrip|shape|size|split|startswith|strip|upper|values"
)
KEPT = re.compile(
    "append|apply|apply_gradient|at|count|dtype|extend|flatten_up_to|hyper_params|hyperparams|"
    "init|init_state|inner|inner_state|iterate|key|learning_rate|max|mean|min|mu|multiply|name|"
    "nu|params|pop|step|sum|trace|transpose|unflatten|update|value|var|_replace|__init__"
)
"""Further attributes in functions and classes, of transformations and of their states."""

IN_CLASSES = re.compile(
    "callable|classmethod|hash|iter|next|object|property|staticmethod|super|type|[A-Za-z]+Error"
)
NUMBERS = (
    "abs|absolute|add|all|any|arange|array|arccos|arcsin|arctan|arctan2|asarray|bfloat16|bool_|"
    "ceil|clip|concatenate|cos|cosh|cumprod|cumsum|divide|double|e|equal|exp|exp2|expm1|finfo|"
    "float16|float32|float64|floor|floor_divide|full|full_like|greater|greater_equal|hypot|inf|"
    "int16|int32|int64|int8|interp|isfinite|isinf|isnan|less|less_equal|linspace|log|log10|"
    "log1p|log2|logical_and|logical_not|logical_or|logspace|max|maximum|mean|min|minimum|mod|"
    "multiply|nan|ndim|negative|newaxis|not_equal|ones|ones_like|outer|pi|piecewise|power|prod|"
    "reciprocal|remainder|reshape|round|searchsorted|select|shape|sign|sin|sinh|sqrt|square|"
    "squeeze|stack|std|subtract|sum|tan|tanh|true_divide|uint32|uint8|var|where|zeros|zeros_like"
)
NAME = "[a-zA-Z][a-zA-Z0-9_]*"
ALLOWED = re.compile(
    rf"math\.{NAME}|(jnp|np|numpy|onp|jax\.numpy)\.({NUMBERS}|linalg\.norm)|jax\.(lax|nn)\.{NAME}"
    rf"|jax\.(tree_map|tree\.{NAME}|tree_util\.(tree_{NAME}|keystr))|functools\.partial"
    rf"|optim\.{NAME}"
    r"|jax\.(Array|grad|jit|tree_leaves|value_and_grad|vjp|vmap)"
    r"|flax\.core\.(FrozenDict|freeze|unfreeze)"
    r"|flax\.traverse_util\.(flatten_dict|unflatten_dict|path_aware_map|ModelParamTraversal)"
    r"|flax\.struct\.(dataclass|field)"
    rf"|typing\.{NAME}|collections\.(defaultdict|namedtuple|OrderedDict)"
    r"|dataclasses\.(dataclass|field|replace)"
    rf"|optax\.((contrib|losses|schedules|transforms|tree|tree_utils)\.)?{NAME}"
)


def possible_effect(text: str) -> str | None:
    """The first name in an expression that may do more than compute; None if there is none.

    Every name and attribute counts, not calls alone: a function that is handed over is called
    elsewhere. A name that is none of Python, of this list or of the modules is left to the
    evaluation, which does not know it either.
    """
    return next(_unknown(ast.parse(text, mode="eval")), None)


def possible_effect_of(
    sources: Collection[str], known: Collection[str] = ()
) -> str | None:
    """The first thing in the sources of functions and classes that may do more than compute.

    Attributes that they define themselves are safe; a loop that may not end is not. Functions and
    classes whose names are `known` are not checked.
    """
    made = [node for source in sources for node in ast.parse(source).body]
    own = _own_attributes(made)
    # Helpers as `rewrite` emits them are known to be harmless.
    checked = (node for node in made if getattr(node, "name", "") not in known)
    found = chain.from_iterable(_unknown(node, own) for node in checked)
    return next(found, None)


def _own_attributes(definitions: Iterable[ast.stmt]) -> frozenset[str]:
    """The attributes that functions and classes define themselves."""
    nodes = chain.from_iterable(map(ast.walk, definitions))
    names = chain.from_iterable(map(_made_by, nodes))
    return frozenset(name for name in names if not _is_of_arrays(name))


def may_have_effects(node: ast.AST) -> bool:
    """Whether an expression uses a name that may do more than compute.

    Names of the program's own do not count, unlike in `possible_effect`.
    """
    # optax.adam, jnp.save
    if isinstance(node, ast.Attribute) and _root(node) in KNOWN_MODULES:
        return not ALLOWED.fullmatch(ast.unparse(node))
    if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom):
        return True
    # open, input
    if isinstance(node, ast.Name) and _is_unsafe(node.id):
        return True
    return any(may_have_effects(child) for child in ast.iter_child_nodes(node))


def _unknown(node: ast.AST, own: frozenset[str] | None = None) -> Iterator[str]:
    """The names below a node that may do more than compute.

    `own` are the attributes that functions and classes define; it is None in an expression.
    """
    if isinstance(node, ast.Attribute):
        dotted = ast.unparse(node)
        if _root(node) in KNOWN_MODULES:
            # Nothing is assigned to an attribute of a module: `jax.jit = …`
            if not ALLOWED.fullmatch(dotted) or not isinstance(node.ctx, ast.Load):
                yield dotted
            return
        is_own = own is not None and (node.attr in own or KEPT.fullmatch(node.attr))
        is_safe = isinstance(node.ctx, ast.Load) or _root(node) == "self"
        if not is_safe or not (is_own or METHODS.fullmatch(node.attr)):
            yield dotted
    elif isinstance(node, ast.Name):
        name = node.id
        is_known = not _is_unsafe(name) and name not in KNOWN_MODULES
        is_allowed = own is not None and IN_CLASSES.fullmatch(name)
        if not is_allowed and (not is_known or name.startswith("__")):
            yield name
    elif isinstance(node, EFFECTFUL):
        yield type(node).__name__.lower()
    for child in ast.iter_child_nodes(node):
        yield from _unknown(child, own)


EFFECTFUL = (
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
    """Whether modules or arrays have an attribute of this name, which may be more than a field."""
    return name.startswith("__") or any(
        hasattr(home, name) for home in (np, jnp, np.ndarray, os)
    )


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_unsafe(name: str) -> bool:
    # lambda path, _: "kernel" in path; an interactive Python has its last result under this name.
    if name == "_":
        return False
    return hasattr(builtins, name) and not BUILTINS.fullmatch(name)
