"""The model whose `apply` belongs to some parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.facts import Facts
from codemods.flow.binding import values_of
from codemods.flow.objects import Function, Instance
from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit
from codemods.vocabulary import MODELS

LONGEST = 40
"""The source of a model that is made anew may have as many characters."""


def apply_function(call: ast.Call, params: ast.expr, unit: Unit, facts: Facts) -> str:
    """How a file says the function that belongs to some parameters: `model.apply`, or `None` if that is not known.

    It is known if `params` were made by `model.init(…)` in the function of `call`, or in one within it, where `model` is a Linen
    module under a name bound once, or a short call that makes one.
    """
    scope = facts.scope(call)
    initialised = origin(params, scope.node)
    for node in _evaluated(initialised, scope, facts) if initialised is not None else ():
        match node:
            case ast.Attribute(attr="init" | "init_with_output", value=model) if _is_model(
                model, facts
            ):
                return (
                    f"{unit.source(model)}.apply"
                    if _is_known(model, scope, unit, facts)
                    else "None"
                )
    return "None"


def _evaluated(call: ast.Call, scope: Scope, facts: Facts) -> Iterator[ast.AST]:
    """What is evaluated for a call: itself, and the function within the scope that it calls."""
    yield from ast.walk(call)
    for item in facts.objects(call.func):
        if isinstance(item, Function) and item.scope.parent is scope:
            yield from ast.walk(item.node)


def _is_known(model: ast.expr, scope: Scope, unit: Unit, facts: Facts) -> bool:
    """Whether the source of a model means the same in a scope."""
    parts = [model.func, *values_of(model)] if isinstance(model, ast.Call) else [model]
    if len(unit.source(model)) > LONGEST or not all(
        isinstance(part, ast.Name | ast.Constant) for part in parts
    ):
        return False
    return all(
        facts.scope(name).binding(name.id) is scope.binding(name.id)
        and len(_bindings(name.id, scope.node)) <= 1
        for name in parts
        if isinstance(name, ast.Name)
    )


def _is_model(node: ast.expr, facts: Facts) -> bool:
    objects = list(facts.objects(node))
    classes = [item.cls for item in objects if isinstance(item, Instance)]
    return (
        bool(objects)
        and len(classes) == len(objects)
        and all(facts.derives_from(cls, *MODELS) for cls in classes)
    )


def _bindings(name: str, scope: ast.AST) -> list[ast.AST]:
    names = (node for node in _own_nodes(scope) if isinstance(node, ast.Name) and node.id == name)
    return [node for node in names if isinstance(node.ctx, ast.Store)]


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes within a function, without those of functions in it."""
    pending = [*ast.iter_child_nodes(scope)]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))


def origin(params: ast.expr, scope: ast.AST, depth: int = 4) -> ast.Call | None:
    """The expression that made some parameters, through names that are assigned once, subscripts and `pop`."""
    match params:
        case (
            ast.Subscript(value=value)
            | ast.Call(func=ast.Attribute(value=value, attr="pop" | "unfreeze"))
        ):
            return origin(value, scope, depth)
        case ast.Call() as call:
            return call
        case ast.Name(id=name) if depth:
            values = [
                node.value
                for node in _own_nodes(scope)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if any(isinstance(item, ast.Name) and item.id == name for item in ast.walk(target))
            ]
            return (
                origin(values[0], scope, depth - 1)
                if len(values) == 1 == len(_bindings(name, scope))
                else None
            )
    return None
