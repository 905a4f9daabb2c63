"""The model whose `apply` belongs to some params."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from codemods.analysis.facts import Facts
from codemods.dataflow.effects import Variable
from codemods.inference.binding import values_of
from codemods.inference.objects import Instance
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit
from codemods.vocabulary import MODELS

INITIALIZING = ("init", "init_with_output")
LONGEST = 40
"""The longest source of a model, in characters, that is repeated in new code."""


def apply_function(call: ast.Call, params: ast.expr, unit: Unit, facts: Facts) -> str:
    """The expression for the function of some params: `model.apply`, or `None` if not known.

    It is known if `params` were made by `model.init(…)` in the function of `call`, or in one within
    it, where `model` is a Linen module under a name bound once, or a short call that makes one, and
    no other model made a part of them.
    """
    scope = facts.scope(call)
    made = origin(params, facts)
    if made is None:
        return "None"
    # what a function in the scope evaluates counts, too
    functions = (
        item.node for item in facts.functions(made.func) if item.scope.parent is scope
    )
    nodes = chain.from_iterable(map(_walk, (made, *functions)))
    models = [
        node.value
        for node in nodes
        # model.init(key, x)
        if isinstance(node, ast.Attribute) and node.attr in INITIALIZING
        if _is_model(node.value, facts)
    ]
    # params of several models belong to none of them
    sources = {unit.source(model) for model in models}
    if len(sources) != 1 or not all(
        _is_known(one, scope, unit, facts) for one in models
    ):
        return "None"
    return f"{sources.pop()}.apply"


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """What an expression evaluates, but for what is a part of a tree under a name of its own."""
    yield node
    # {"encoder": encoder.init(key, x)}
    if isinstance(node, ast.Dict):
        return
    for child in ast.iter_child_nodes(node):
        # FrozenDict(encoder=encoder.init(key, x))
        if not isinstance(child, ast.keyword):
            yield from _walk(child)


def _is_known(model: ast.expr, scope: Scope, unit: Unit, facts: Facts) -> bool:
    """Whether the source of a model means the same in a scope."""
    if len(unit.source(model)) > LONGEST:
        return False
    parts = [model]
    # MLP(features, 10)
    if isinstance(model, ast.Call):
        parts = [model.func, *values_of(model)]
    stores = facts.dataflow.definitions.stores
    return all(
        isinstance(part, ast.Constant)
        or (
            isinstance(part, ast.Name)
            and facts.scope(part).binding(part.id) is scope.binding(part.id)
            and len(stores(Variable(scope, part.id))) <= 1
        )
        for part in parts
    )


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
            definitions = facts.dataflow.definitions
            variable = definitions.variable(params)
            if variable is None or variable.scope is not facts.scope(params):
                return None
            # but for `del variables`
            stores = [
                one
                for one in definitions.stores(variable)
                if not isinstance(getattr(one, "ctx", None), ast.Del)
            ]
            around = variable.unit.parents.get(stores[0]) if len(stores) == 1 else None
            # output, variables = model.init_with_output(key, x)
            while isinstance(around, ast.Tuple):
                around = variable.unit.parents.get(around)
            if isinstance(around, ast.Assign):
                return origin(around.value, facts, depth - 1)
    return None
