"""The model whose `apply` belongs to some params."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.facts import Facts
from codemods.dataflow.effects import Variable
from codemods.inference.binding import values_of
from codemods.inference.objects import Function, Instance
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
    initialised = origin(params, facts)
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
        variable = Variable(scope, part.id)
        if len(facts.dataflow.definitions.stores(variable)) > 1:
            return False
    return True


def _is_model(node: ast.expr, facts: Facts) -> bool:
    objects = list(facts.objects(node))
    return bool(objects) and all(
        isinstance(item, Instance) and facts.derives_from(item.cls, *MODELS)
        for item in objects
    )


def origin(params: ast.expr, facts: Facts, depth: int = 8) -> ast.Call | None:
    """The call that made some params.

    It is found through variables of the function that are assigned once, subscripts and `pop`.
    """
    match params:
        # variables["params"], variables.pop("params")
        case (
            ast.Subscript(value=value)
            | ast.Call(func=ast.Attribute(value=value, attr="pop" | "unfreeze"))
        ):
            return origin(value, facts, depth)
        case ast.Call() as call:
            return call
        case ast.Name() if depth:
            variable = facts.dataflow.definitions.variable(params)
            if variable is None or variable.scope is not facts.scope(params):
                return None
            stores = facts.dataflow.definitions.stores(variable)
            match [one for one in stores if not _is_deleted(one)]:
                case [ast.Name() as store]:
                    # output, variables = model.init_with_output(key, x)
                    around = variable.unit.parents.get(store)
                    while isinstance(around, ast.Tuple):
                        around = variable.unit.parents.get(around)
                    if isinstance(around, ast.Assign):
                        return origin(around.value, facts, depth - 1)
    return None


def _is_deleted(store: ast.AST) -> bool:
    """Whether this is the name in `del variables`."""
    return isinstance(store, ast.Name) and isinstance(store.ctx, ast.Del)
