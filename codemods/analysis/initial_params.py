"""The params that optimizers are created for: where they come from, and what that tells of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain

from codemods.analysis.facts import Facts
from codemods.dataflow.effects import Variable
from codemods.inference.binding import arguments_of, values_of
from codemods.inference.objects import Container, Instance, LegacyObject, Result
from codemods.inference.scopes import Scope
from codemods.optimizers.methods import CREATE
from codemods.sources.modules import Unit
from codemods.vocabulary import ARRAYS, MODELS, RAVEL_TREE, full_names, listed

FREEZING = full_names("flax.core", "freeze frozen_dict.freeze")
INITIALIZING = ("init", "init_with_output")
LONGEST = 40
"""The longest source of a model, in characters, that is repeated in new code."""

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


def initial_params(optimizer: LegacyObject) -> ast.expr | None:
    """The params in `definition.create(params)`; None for an optimizer that another call gives."""
    if not isinstance(optimizer.node, ast.Call):
        return None
    given = arguments_of(CREATE, optimizer.node)
    return given["target"] if given is not None else None


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


# The model


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


# Frozen dicts: those that a model makes are plain dicts today


def frozen(node: ast.expr, facts: Facts) -> ast.expr | None:
    """What is frozen by an expression; None if it is not `flax.core.freeze(params)`."""
    match node:
        case ast.Call(func=function, args=[params], keywords=[]):
            return None if FREEZING.isdisjoint(facts.names(function)) else params
    return None


def are_plain(optimizers: Iterable[LegacyObject], facts: Facts) -> bool:
    """Whether the parameters with which optimizers were created came from models as they are."""
    for params in map(initial_params, optimizers):
        made = None if params is None else origin(params, facts)
        # model.init(key, x), jax.jit(model.init)(key, x)
        if made is None or not any(
            isinstance(one, ast.Attribute) and one.attr in INITIALIZING
            for one in ast.walk(made.func)
        ):
            return False
    return True


def are_frozen(optimizers: Iterable[LegacyObject], facts: Facts) -> bool:
    """Whether the parameters with which optimizers were created were frozen."""
    given = map(initial_params, optimizers)
    return all(params and frozen(params, facts) for params in given)


# Whether today's `TrainState` accepts them


def need_any(optimizer: LegacyObject, facts: Facts) -> bool | None:
    """Whether `TrainState` fails when it looks for a key in some params; None if nothing shows it.

    They are an array, a number or a dataclass then.
    """
    items = [*facts.target(optimizer)]
    if any(_is_bare(item, facts) for item in items):
        return True
    if any(isinstance(item, Container) for item in items):
        return False
    params = initial_params(optimizer)
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
