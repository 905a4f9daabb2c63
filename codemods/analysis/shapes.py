"""The params that an optimizer is created for: whether today's `TrainState` accepts them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.facts import Facts
from codemods.analysis.model_apply import origin
from codemods.analysis.origins import Origins, Variable
from codemods.inference.binding import arguments_of
from codemods.inference.objects import Container, Instance, LegacyObject, Place, Result
from codemods.inference.scopes import Scope
from codemods.optimizers.methods import CREATE
from codemods.sources.modules import Unit
from codemods.vocabulary import ARRAYS

BUILTIN = (
    "builtins.dict",
    "builtins.list",
    "builtins.tuple",
    "collections.OrderedDict",
    "typing.NamedTuple",
)
OF_DICTS = ("freeze", "unfreeze", "FrozenDict", "flatten_dict", "pop")
"""The functions of `flax.core` and `flax.traverse_util` that take only a dict, or return one."""

KEYED = ("items", "keys", "values", "unfreeze")
"""Methods of a dict that an array or a dataclass does not have."""


class Parameters:
    """Finds the shape of params from where they are made and how the program uses them."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.origins = facts.of(Origins)

    def need_any(self, optimizer: LegacyObject) -> bool | None:
        """Whether `TrainState` fails when it looks for a key in an optimizer's params.

        They are an array, a number or a dataclass then. None if nothing is known of them.
        """
        targets = self.facts.target(optimizer)
        shapes = {_is_bare(item, self.facts) for item in targets}
        shapes.discard(None)
        if shapes:
            return True in shapes
        params = _given(optimizer)
        if params is None:
            return None
        made = origin(params, self.facts) or params
        if _computes_array(made, self.facts):
            return True
        # params: jnp.ndarray
        if _annotated_array(params, self.facts):
            return True
        return False if self._has_keys(optimizer, params) else None

    def come_from_outside(self, optimizer: LegacyObject) -> bool:
        """Whether the params are an argument of a function that nobody in view calls."""
        params = _given(optimizer)
        if params is None:
            return True
        for root in self.roots(params):
            if isinstance(root, ast.Constant | ast.Name | None):
                continue
            if not self.is_given(root):
                return False
        return True

    def _has_keys(self, optimizer: LegacyObject, params: ast.expr) -> bool:
        """Whether params are a dict, or similar, wherever they come from."""
        made_of = self.facts.legacy.definitions(optimizer)
        # `MultiOptimizer` accepted nothing else.
        if any(obj.made_by == "MultiOptimizer" for obj in made_of):
            return True
        owners = [optimizer]
        for outer, inner in self.facts.legacy.links:
            if inner is optimizer and outer.kind == "optimizer":
                owners.append(outer)
        if self._used_as_dict(("target", owner) for owner in owners):
            return True
        for root in self.roots(params):
            if not self._made_as_dict(root) and not self._used_as_dict([root]):
                return False
        return True

    def roots(self, node: ast.expr) -> list[Place]:
        """The places from which a value comes unchanged, as far back as possible."""
        return [*self.flow.roots(self.flow.places[node])]

    def is_given(self, place: Place) -> bool:
        """Whether a place is a parameter of a function."""
        match place:
            case ("variable", Scope() as scope, str(name)):
                stores = self.origins.stores(Variable(scope, name))
                return all(isinstance(store, ast.arg) for store in stores)
        return False

    # By their uses

    def _used_as_dict(self, places: Iterable[Place]) -> bool:
        for place in places:
            for unit, node in self.flow.stands_at(place):
                if _by_key(node, unit, self.facts):
                    return True
        return False

    # By what makes them

    def _made_as_dict(self, place: Place) -> bool:
        match place:
            # state, params = variables.pop("params")
            case ("variable", Scope() as scope, str(name)):
                stores = self.origins.stores(Variable(scope, name))
                values = [*_values(stores, scope.unit)]
                return bool(values) and all(map(self._made_as_dict, values))
            # variables["params"]
            case (
                ast.Dict()
                | ast.DictComp()
                | ast.Subscript(slice=ast.Constant(value="params"))
            ):
                return True
            # variables.pop("params")
            case ast.Call(
                func=ast.Attribute(attr="pop"), args=[ast.Constant(value="params")]
            ):
                return True
            # model.init(key, x)
            case ast.Call(
                func=ast.Attribute(attr="unfreeze" | "init" | "init_with_output")
            ):
                return True
            case ast.Call(func=function):
                return _is_of_dicts(function, self.facts)
        return False


def _given(optimizer: LegacyObject) -> ast.expr | None:
    """The params that an optimizer was created for."""
    if not isinstance(optimizer.node, ast.Call):
        return None
    # optim.Adam(1e-3).create(params)
    given = arguments_of(CREATE, optimizer.node)
    return given["target"] if given is not None else None


def _values(stores: Iterable[ast.AST], unit: Unit) -> Iterator[ast.expr | None]:
    """The values that are assigned to a variable, alone or among others.

    None for every store that is not an assignment.
    """
    for store in stores:
        statement: ast.AST | None = unit.parents.get(store)
        while isinstance(statement, ast.Tuple | ast.List | ast.Starred):
            statement = unit.parents.get(statement)
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            yield statement.value
        else:
            yield None


def _by_key(node: ast.expr, unit: Unit, facts: Facts) -> bool:
    """Whether an expression is used as only a dict can be."""
    parent = unit.parents.get(node)
    match parent:
        # params["dense"]
        case ast.Subscript(value=value, slice=ast.Constant(value=str())):
            return value is node
        case ast.Attribute(attr=name):
            return name in KEYED
        # {"params": params}, {**params}
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if value is not node and key is not node:
                    continue
                if key is None:
                    return True
                return isinstance(key, ast.Constant) and key.value == "params"
        # "dense" in params, f(**params)
        case (
            ast.Compare(left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()])
            | ast.keyword(arg=None)
        ):
            return True
        # flax.core.freeze(params), model.apply(params, x)
        case ast.Call(func=function, args=[first, *_]) if first is node:
            if isinstance(function, ast.Attribute) and function.attr == "apply":
                return True
            return _is_of_dicts(function, facts)
    return False


def _is_of_dicts(function: ast.expr, facts: Facts) -> bool:
    name = facts.full_name(function)
    _, _, last = name.rpartition(".")
    return name.startswith("flax.") and last in OF_DICTS


def _is_bare(item: object, facts: Facts) -> bool | None:
    """Whether an object is no container with keys; None if that is not known."""
    if isinstance(item, Container):
        return _is_bare_container(item, facts)
    if isinstance(item, Result):
        return True if item.name.startswith(ARRAYS) else None
    if not isinstance(item, Instance):
        return None
    is_container = {"__contains__", "__iter__"} & item.cls.scope.names
    return not (is_container or facts.derives_from(item.cls, *BUILTIN))


def _is_bare_container(item: Container, facts: Facts) -> bool | None:
    """Whether a container compares a key with its elements, and one of them is a NumPy array.

    Such a comparison is one for each number of the array. None if that is not known.
    """
    if isinstance(item.node, ast.Dict | ast.DictComp):
        return False
    if item.role.lower().endswith("dict"):
        return False
    found = facts.flow.solver.at(("elements", item))
    elements = list(found)
    # [np.zeros(3)]: `"params" in …` compares with the array
    for element in elements:
        if isinstance(element, Result) and element.name.startswith("numpy."):
            return True
    kinds = (Container, Result)
    is_plain = all(isinstance(element, kinds) for element in elements)
    return False if elements and is_plain else None


def _computes_array(node: ast.expr, facts: Facts) -> bool:
    """Whether an expression is a number, or arithmetic on or a method of an array."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.BinOp(left=left, right=right):
            return _computes_array(left, facts) or _computes_array(right, facts)
        case (
            ast.UnaryOp(operand=inner)
            | ast.Subscript(value=inner)
            | ast.Attribute(value=inner)
        ):
            return _computes_array(inner, facts)
        # jnp.zeros(3).reshape(…)
        case ast.Call(func=ast.Attribute(value=inner)) if _computes_array(inner, facts):
            return True
    for item in facts.objects(node):
        if isinstance(item, Result) and item.name.startswith(ARRAYS):
            return True
    return False


def _annotated_array(params: ast.expr, facts: Facts) -> bool:
    place = facts.flow.places.get(params)
    for annotation in facts.flow.reading.annotations:
        if annotation.target == place:
            names = facts.externals(annotation.expression)
            if any(name.startswith(ARRAYS) for name in names):
                return True
    return False
