"""The model whose `apply` belongs to some parameters."""

from __future__ import annotations

import ast

from codemods.facts import Facts
from codemods.flow.modules import Unit
from codemods.flow.objects import Instance

MODULES = ("flax.linen.Module", "flax.linen.module.Module")


def apply_function(call: ast.Call, params: ast.expr, unit: Unit, facts: Facts) -> str:
    """`model.apply` if `params` were made by `model.init(…)` in the function of `call`, where `model` is a Linen module
    under a name bound once; else `None`.
    """
    scope = facts.scope(call)
    initialised = origin(params, scope.node, facts)
    for node in ast.walk(initialised) if initialised is not None else ():
        if not (isinstance(node, ast.Attribute) and node.attr in ("init", "init_with_output")):
            continue
        model = node.value
        if isinstance(model, ast.Name) and _is_model(model, facts):
            same = facts.scope(model).binding(model.id) is scope.binding(model.id)
            return f"{model.id}.apply" if same and len(_bindings(model.id, scope.node)) <= 1 else "None"
    return "None"


def _is_model(node: ast.Name, facts: Facts) -> bool:
    objects = list(facts.objects(node))
    return bool(objects) and all(
        isinstance(item, Instance) and facts.derives_from(item.cls, *MODULES) for item in objects
    )


def _bindings(name: str, scope: ast.AST) -> list[ast.AST]:
    return [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]


def origin(params: ast.expr, scope: ast.AST, facts: Facts, depth: int = 4) -> ast.expr | None:
    """The expression that made some parameters, through names that are assigned once, subscripts and `pop`."""
    match params:
        case ast.Subscript(value=value):
            return origin(value, scope, facts, depth)
        case ast.Call(func=ast.Attribute(value=value, attr="pop" | "unfreeze")):
            return origin(value, scope, facts, depth)
        case ast.Call():
            return params
        case ast.Name(id=name) if depth:
            values = [
                node.value
                for node in ast.walk(scope)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if any(isinstance(item, ast.Name) and item.id == name for item in ast.walk(target))
            ]
            return (
                origin(values[0], scope, facts, depth - 1) if len(values) == 1 == len(_bindings(name, scope)) else None
            )
        case _:
            return None
