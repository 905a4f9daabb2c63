"""The parameters that an optimizer is created for: whether today's `TrainState` takes them as they are."""

from __future__ import annotations

import ast

from codemods.facts import Facts
from codemods.flow.objects import Container, Instance, Result, Thing
from codemods.rules.model_apply import origin

ARRAYS = ("jax.numpy.", "jax.random.", "numpy.", "jax.nn.", "jax.Array", "chex.Array")
STRUCTS = ("flax.struct.dataclass", "flax.struct.PyTreeNode", "chex.dataclass")


def needs_any_params(facts: Facts, optimizer: Thing) -> bool | None:
    """Whether an optimizer's parameters are a bare array, a number or a dataclass: then `TrainState` fails to look for a key.

    None if nothing is known of them.
    """
    if any(_is_bare(item, facts) for item in facts.target(optimizer)):
        return True
    if any(isinstance(item, Container) for item in facts.target(optimizer)):
        return False
    call = optimizer.node
    if not isinstance(call, ast.Call) or not (call.args or call.keywords):
        return None
    params = call.args[0] if call.args else call.keywords[0].value
    made = origin(params, facts.scope(call).node) or params
    return _computes_array(made, facts) or _annotated_array(params, facts) or None


def _is_bare(item: object, facts: Facts) -> bool:
    if isinstance(item, Result):
        return item.name.startswith(ARRAYS)
    if not isinstance(item, Instance):
        return False
    decorators = (node.func if isinstance(node, ast.Call) else node for node in item.cls.node.decorator_list)
    decorated = any(name in STRUCTS for decorator in decorators for name in facts.externals(decorator))
    return decorated or facts.derives_from(item.cls, *STRUCTS)


def _computes_array(node: ast.expr, facts: Facts) -> bool:
    """Whether an expression is a number, or arithmetic on or a method of an array."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.BinOp(left=left, right=right):
            return _computes_array(left, facts) or _computes_array(right, facts)
        case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner) | ast.Attribute(value=inner):
            return _computes_array(inner, facts)
        case ast.Call(func=ast.Attribute(value=inner)) if _computes_array(inner, facts):
            return True
        case _:
            return any(isinstance(item, Result) and item.name.startswith(ARRAYS) for item in facts.objects(node))


def _annotated_array(params: ast.expr, facts: Facts) -> bool:
    place = facts.flow.places.get(params)
    return any(
        name.startswith(ARRAYS)
        for annotation in facts.flow.reading.annotations
        if annotation.target == place
        for name in facts.externals(annotation.expression)
    )
