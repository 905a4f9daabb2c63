"""The params that an optimizer is created for: whether today's `TrainState` accepts them."""

from __future__ import annotations

import ast

from codemods.analysis.facts import Facts
from codemods.analysis.model_apply import origin
from codemods.inference.binding import arguments_of
from codemods.inference.objects import Container, Instance, LegacyObject, Result
from codemods.optimizers.methods import CREATE
from codemods.vocabulary import ARRAYS, RAVEL_TREE, listed

OLD_MODELS = frozenset(
    f"flax.{module}.Model"
    for module in ("nn", "nn.base", "deprecated.nn", "deprecated.nn.base")
)
"""A module with its params, of the Flax before `flax.linen`."""

BUILTIN = listed("""
    builtins: dict list tuple
    collections: OrderedDict
    typing: NamedTuple
""")


def need_any(optimizer: LegacyObject, facts: Facts) -> bool | None:
    """Whether `TrainState` fails when it looks for a key in some params; None if nothing shows it.

    They are an array, a number or a dataclass then.
    """
    items = [*facts.target(optimizer)]
    if any(_is_bare(item, facts) for item in items):
        return True
    if any(isinstance(item, Container) for item in items):
        return False
    params = _given(optimizer)
    if params is None:
        return None
    # params: jnp.ndarray
    place = facts.flow.places.get(params)
    is_annotated = any(
        name.startswith(ARRAYS)
        for annotation in facts.flow.reading.annotations
        if annotation.target == place
        for name in facts.externals(annotation.expression)
    )
    made = origin(params, facts) or params
    return is_annotated or _computes_array(made, facts) or None


def _is_bare(item: object, facts: Facts) -> bool:
    """Whether an object is known to be no container with keys."""
    match item:
        # [np.zeros(3)]: `"params" in …` compares with each number of the array
        case Container(node=node, role=role):
            is_dict = (
                isinstance(node, ast.Dict | ast.DictComp) or "dict" in role.lower()
            )
            return not is_dict and any(
                isinstance(one, Result) and one.name.startswith("numpy.")
                for one in facts.flow.solver.at(("elements", item))
            )
        case Result(name=name):
            return name.startswith(ARRAYS) or name in OLD_MODELS
        case Instance(cls=cls):
            is_container = {"__contains__", "__iter__"} & cls.scope.names
            return not (is_container or facts.derives_from(cls, *BUILTIN))
    return False


def _computes_array(node: ast.expr, facts: Facts) -> bool:
    """Whether an expression is a number, or arithmetic on or a method of an array."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.BinOp(left=left, right=right):
            return _computes_array(left, facts) or _computes_array(right, facts)
        # jnp.zeros(3).reshape(…)
        case (
            ast.UnaryOp(operand=inner)
            | ast.Subscript(value=inner)
            | ast.Attribute(value=inner)
            | ast.Call(func=ast.Attribute(value=inner))
        ) if _computes_array(inner, facts):
            return True
        # flat, unravel = ravel_pytree(params)
        case ast.Call(func=function) if facts.full_name(function) in RAVEL_TREE:
            return True
    return any(
        isinstance(item, Result) and item.name.startswith(ARRAYS)
        for item in facts.objects(node)
    )


def _given(optimizer: LegacyObject) -> ast.expr | None:
    """The params that an optimizer was created for."""
    if not isinstance(optimizer.node, ast.Call):
        return None
    # optim.Adam(1e-3).create(params)
    given = arguments_of(CREATE, optimizer.node)
    return given["target"] if given is not None else None
