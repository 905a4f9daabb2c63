"""The params that an optimizer is created for: whether today's `TrainState` accepts them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.facts import Facts
from codemods.analysis.model_apply import origin
from codemods.analysis.naming import last_word
from codemods.analysis.origins import Origins, Variable
from codemods.inference.binding import arguments_of
from codemods.inference.objects import Container, Instance, LegacyObject, Place, Result
from codemods.inference.scopes import Scope
from codemods.optimizers.methods import CREATE
from codemods.sources.modules import Unit
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
        shapes = {self._is_bare(item) for item in self.facts.target(optimizer)} - {None}
        if shapes:
            return True in shapes
        params = _given(optimizer)
        if params is None:
            return None
        # params: jnp.ndarray
        place = self.flow.places.get(params)
        is_annotated = any(
            name.startswith(ARRAYS)
            for annotation in self.flow.reading.annotations
            if annotation.target == place
            for name in self.facts.externals(annotation.expression)
        )
        if is_annotated or self._computes_array(origin(params, self.facts) or params):
            return True
        return False if self._has_keys(optimizer, params) else None

    def come_from_outside(self, optimizer: LegacyObject) -> bool:
        """Whether the params are an argument of a function that nobody in view calls."""
        params = _given(optimizer)
        return params is None or all(
            isinstance(root, ast.Constant | ast.Name | None) or self.is_given(root)
            for root in self.roots(params)
        )

    def _has_keys(self, optimizer: LegacyObject, params: ast.expr) -> bool:
        """Whether params are a dict, or similar, wherever they come from."""
        made_of = self.facts.legacy.definitions(optimizer)
        # `MultiOptimizer` accepted nothing else.
        if any(obj.made_by == "MultiOptimizer" for obj in made_of):
            return True
        links = self.facts.legacy.links
        outer = [one for one, inner in links if inner is optimizer]
        owners = [optimizer, *(one for one in outer if one.kind == "optimizer")]
        return self._used_as_dict(("target", owner) for owner in owners) or all(
            self._made_as_dict(root) or self._used_as_dict([root])
            for root in self.roots(params)
        )

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
        return any(
            self._by_key(node, unit)
            for place in places
            for unit, node in self.flow.stands_at(place)
        )

    def _by_key(self, node: ast.expr, unit: Unit) -> bool:
        """Whether an expression is used as only a dict can be."""
        match unit.parents.get(node):
            # params["dense"]
            case ast.Subscript(value=value, slice=ast.Constant(value=str())):
                return value is node
            case ast.Attribute(attr=name):
                return name in KEYED
            # {"params": params}, {**params}
            case ast.Dict(keys=keys, values=values) if node in values:
                key = keys[values.index(node)]
                return key is None or (
                    isinstance(key, ast.Constant) and key.value == "params"
                )
            # "dense" in params, f(**params)
            case (
                ast.Compare(
                    left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()]
                )
                | ast.keyword(arg=None)
            ):
                return True
            # flax.core.freeze(params), model.apply(params, x)
            case ast.Call(func=function, args=[first, *_]) if first is node:
                return last_word(function) == "apply" or self._is_of_dicts(function)
        return False

    def _is_of_dicts(self, function: ast.expr) -> bool:
        name = self.facts.full_name(function)
        return name.startswith("flax.") and name.rpartition(".")[2] in OF_DICTS

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
            # variables.pop("params"), model.init(key, x)
            case (
                ast.Call(
                    func=ast.Attribute(attr="pop"), args=[ast.Constant(value="params")]
                )
                | ast.Call(
                    func=ast.Attribute(attr="unfreeze" | "init" | "init_with_output")
                )
            ):
                return True
            case ast.Call(func=function):
                return self._is_of_dicts(function)
        return False

    def _is_bare(self, item: object) -> bool | None:
        """Whether an object is no container with keys; None if that is not known."""
        match item:
            case Container():
                return self._is_bare_container(item)
            case Result(name=name):
                return True if name.startswith(ARRAYS) or name in OLD_MODELS else None
            case Instance(cls=cls):
                is_container = {"__contains__", "__iter__"} & cls.scope.names
                return not (is_container or self.facts.derives_from(cls, *BUILTIN))
        return None

    def _is_bare_container(self, item: Container) -> bool | None:
        """Whether a container compares a key with its elements, and one of them is a NumPy array.

        Such a comparison is one for each number of the array. None if that is not known.
        """
        is_dict = isinstance(item.node, ast.Dict | ast.DictComp)
        if is_dict or item.role.lower().endswith("dict"):
            return False
        elements = self.flow.solver.at(("elements", item))
        # [np.zeros(3)]: `"params" in …` compares with the array
        if any(
            isinstance(one, Result) and one.name.startswith("numpy.")
            for one in elements
        ):
            return True
        is_plain = all(isinstance(one, Container | Result) for one in elements)
        return False if elements and is_plain else None

    def _computes_array(self, node: ast.expr) -> bool:
        """Whether an expression is a number, or arithmetic on or a method of an array."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, int | float)
            case ast.BinOp(left=left, right=right):
                return self._computes_array(left) or self._computes_array(right)
            case (
                ast.UnaryOp(operand=inner)
                | ast.Subscript(value=inner)
                | ast.Attribute(value=inner)
            ):
                return self._computes_array(inner)
            # jnp.zeros(3).reshape(…)
            case ast.Call(func=ast.Attribute(value=inner)) if self._computes_array(
                inner
            ):
                return True
            # flat, unravel = ravel_pytree(params)
            case ast.Call(func=function) if (
                self.facts.full_name(function) in RAVEL_TREE
            ):
                return True
        return any(
            isinstance(item, Result) and item.name.startswith(ARRAYS)
            for item in self.facts.objects(node)
        )


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
