"""The model whose `apply` belongs to some params."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.facts import Facts
from codemods.inference.binding import values_of
from codemods.inference.objects import Function, Instance
from codemods.inference.reading import FunctionNode
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit
from codemods.vocabulary import MODELS

LONGEST = 40
"""The longest source of a model, in characters, that is repeated in new code."""


def apply_function(call: ast.Call, params: ast.expr, unit: Unit, facts: Facts) -> str:
    """The expression for the function of some params: `model.apply`, or `None` if not known.

    It is known if `params` were made by `model.init(…)` in the function of `call`, or in one within
    it, where `model` is a Linen module under a name bound once, or a short call that makes one.
    """
    scope = facts.scope(call)
    initialised = origin(params, scope.node)
    if initialised is None:
        return "None"
    for node in _evaluated(initialised, scope, facts):
        match node:
            # model.init(key, x)
            case ast.Attribute(attr="init" | "init_with_output", value=model):
                if not _is_model(model, facts):
                    continue
                if _is_known(model, scope, unit, facts):
                    return f"{unit.source(model)}.apply"
                return "None"
    return "None"


def _evaluated(call: ast.Call, scope: Scope, facts: Facts) -> Iterator[ast.AST]:
    """The nodes that are evaluated for a call: its own, and those of a function in the scope."""
    yield from ast.walk(call)
    for item in facts.objects(call.func):
        if isinstance(item, Function) and item.scope.parent is scope:
            yield from ast.walk(item.node)


def _is_known(model: ast.expr, scope: Scope, unit: Unit, facts: Facts) -> bool:
    """Whether the source of a model means the same in a scope."""
    if len(unit.source(model)) > LONGEST:
        return False
    parts = [model]
    # MLP(features, 10)
    if isinstance(model, ast.Call):
        parts = [model.func, *values_of(model)]
    for part in parts:
        if isinstance(part, ast.Constant):
            continue
        if not isinstance(part, ast.Name):
            return False
        bound = facts.scope(part).binding(part.id)
        if bound is not scope.binding(part.id):
            return False
        bindings = _bindings(part.id, scope.node)
        if len(bindings) > 1:
            return False
    return True


def _is_model(node: ast.expr, facts: Facts) -> bool:
    objects = list(facts.objects(node))
    for item in objects:
        # class MLP(nn.Module)
        if not isinstance(item, Instance):
            return False
        if not facts.derives_from(item.cls, *MODELS):
            return False
    return bool(objects)


def _bindings(name: str, scope: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for node in _own_nodes(scope):
        match node:
            case ast.Name(id=own, ctx=ast.Store()) if own == name:
                found.append(node)
    return found


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes within a function, without those of functions in it."""
    pending = [*ast.iter_child_nodes(scope)]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, FunctionNode):
            pending.extend(ast.iter_child_nodes(node))


def origin(params: ast.expr, scope: ast.AST, depth: int = 4) -> ast.Call | None:
    """The call that made some params.

    It is found through names that are assigned once, subscripts and `pop`.
    """
    match params:
        # variables["params"], variables.pop("params")
        case (
            ast.Subscript(value=value)
            | ast.Call(func=ast.Attribute(value=value, attr="pop" | "unfreeze"))
        ):
            return origin(value, scope, depth)
        case ast.Call() as call:
            return call
        case ast.Name(id=name) if depth:
            values = _assigned(name, scope)
            bindings = _bindings(name, scope)
            if len(values) == 1 and len(bindings) == 1:
                return origin(values[0], scope, depth - 1)
    return None


def _assigned(name: str, scope: ast.AST) -> list[ast.expr]:
    """The values of the assignments to a name in a function."""
    found: list[ast.expr] = []
    for node in _own_nodes(scope):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            # output, variables = model.init_with_output(key, x)
            inner = ast.walk(target)
            names = (one for one in inner if isinstance(one, ast.Name))
            if any(one.id == name for one in names):
                found.append(node.value)
    return found
