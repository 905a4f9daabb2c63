"""The parameters that an optimizer is created for: whether today's `TrainState` takes them as they are."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.model_apply import origin
from codemods.analysis.origins import Origins, Variable
from codemods.flow.binding import arguments_of
from codemods.flow.objects import Container, Instance, Place, Result, Thing
from codemods.flow.scopes import Scope
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
"""What of `flax.core` and `flax.traverse_util` takes nothing but a dict, or gives one."""

KEYED = ("items", "keys", "values", "unfreeze")
"""The methods of a dict that an array or a dataclass does not have."""


class Parameters:
    """Finds the shape of parameters from where they were made and from what the program does with them."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def need_any(self, optimizer: Thing) -> bool | None:
        """Whether `TrainState` fails to look for a key in an optimizer's parameters: they are an array, a number or a dataclass.

        None if nothing is known of them.
        """
        shapes = {_is_bare(item, self.facts) for item in self.facts.target(optimizer)} - {None}
        if shapes:
            return True in shapes
        params = _given(optimizer)
        if params is None:
            return None
        made = origin(params, self.facts.scope(params).node) or params
        if _computes_array(made, self.facts) or _annotated_array(params, self.facts):
            return True
        return False if self._has_keys(optimizer, params) else None

    def come_from_outside(self, optimizer: Thing) -> bool:
        """Whether the parameters are given to a function that nobody in view calls, as they are."""
        params = _given(optimizer)
        roots = self.roots(params) if params is not None else []
        return all(
            isinstance(root, ast.Constant | ast.Name | None) or self.is_given(root)
            for root in roots
        )

    def _has_keys(self, optimizer: Thing, params: ast.expr) -> bool:
        """Whether parameters are plainly a dict, or the like, wherever they come from."""
        if any(
            thing.name == "MultiOptimizer" for thing in self.facts.legacy.definitions(optimizer)
        ):
            return True  # which took nothing else
        owners = [
            outer
            for outer, inner in self.facts.legacy.links
            if inner is optimizer and outer.kind == "optimizer"
        ]
        if self._used_so(("target", owner) for owner in (optimizer, *owners)):
            return True
        return all(self._made_so(root) or self._used_so([root]) for root in self.roots(params))

    def roots(self, node: ast.expr) -> list[Place]:
        """Where a value comes from, as far back as it is what it was."""
        sources = self._closure(
            [self.facts.flow.places[node]], lambda place: self.facts.incoming.get(place, ())
        )
        return [place for place in sources if not self.facts.incoming.get(place)]

    def is_given(self, place: Place) -> bool:
        """Whether a place, from which a value comes, is a parameter of a function."""
        match place:
            case ("variable", Scope() as scope, str(name)):
                variable = Variable(scope, name)
                return all(isinstance(store, ast.arg) for store in self.origins.stores(variable))
        return False

    # By what becomes of them

    def _used_so(self, places: Iterable[Place]) -> bool:
        reached = self._closure(places, self.facts.flow.solver.targets)
        return any(
            _by_key(node, unit, self.facts)
            for place in reached
            for unit, node in self._nodes.get(place, ())
        )

    @staticmethod
    def _closure(
        places: Iterable[Place], further: Callable[[Place], Iterable[Place]]
    ) -> list[Place]:
        found = dict.fromkeys(places)
        pending = list(found)
        while pending:
            for place in further(pending.pop()):
                if place not in found:
                    found[place] = None
                    pending.append(place)
        return list(found)

    @cached_property
    def _nodes(self) -> dict[Place, list[tuple[Unit, ast.expr]]]:
        """The expressions at each place."""
        found: dict[Place, list[tuple[Unit, ast.expr]]] = defaultdict(list)
        for node, place in self.facts.flow.places.items():
            scope = self.facts.flow.reading.scopes.get(node)
            if scope is not None and isinstance(node, ast.expr):
                found[place].append((scope.unit, node))
        return found

    # By what made them

    def _made_so(self, place: Place, depth: int = 4) -> bool:
        if isinstance(place, ast.expr):
            return self._gives_dict(place, depth)
        match place:
            case ("variable", Scope() as scope, str(name)):
                variable = Variable(scope, name)
                values = list(_values(self.origins.stores(variable), variable.unit))
                return bool(values) and all(
                    value is not None and self._gives_dict(value, depth) for value in values
                )
        return False

    def _gives_dict(self, node: ast.expr, depth: int) -> bool:
        match node:
            case ast.Dict() | ast.DictComp() | ast.Subscript(slice=ast.Constant(value="params")):
                return True
            case ast.Call(func=ast.Attribute(attr="pop"), args=[ast.Constant(value="params")]):
                return True
            case ast.Call(func=ast.Attribute(attr="unfreeze" | "init" | "init_with_output")):
                return True
            case ast.Call(func=function):
                return _is_of_dicts(function, self.facts)
            case ast.Name() if depth:
                variable = self.origins.variable(node)
                place = None if variable is None else ("variable", variable.scope, variable.name)
                return self._made_so(place, depth - 1)
        return False


def _given(optimizer: Thing) -> ast.expr | None:
    """What an optimizer was created for."""
    given = arguments_of(CREATE, optimizer.node) if isinstance(optimizer.node, ast.Call) else None
    return given["target"] if given is not None else None


def _values(stores: Iterable[ast.AST], unit: Unit) -> Iterator[ast.expr | None]:
    """What the statements give that set a variable, alone or among others; None for all but assignments."""
    for store in stores:
        statement: ast.AST | None = unit.parents.get(store)
        while isinstance(statement, ast.Tuple | ast.List | ast.Starred):
            statement = unit.parents.get(statement)
        yield statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def _by_key(node: ast.expr, unit: Unit, facts: Facts) -> bool:
    """Whether an expression is used as a dict is, and nothing else."""
    parent = unit.parents.get(node)
    match parent:
        case ast.Subscript(value=value, slice=ast.Constant(value=str())):
            return value is node
        case ast.Attribute(attr=name):
            return name in KEYED
        case ast.Dict(keys=keys, values=values):
            key = next(
                key for key, value in zip(keys, values, strict=True) if value is node or key is node
            )
            return key is None or (isinstance(key, ast.Constant) and key.value == "params")
        case (
            ast.Compare(left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()])
            | ast.keyword(arg=None)
        ):
            return True
        case ast.Call(func=function, args=[first, *_]) if first is node:
            return _is_of_dicts(function, facts) or (
                isinstance(function, ast.Attribute) and function.attr == "apply"
            )
    return False


def _is_of_dicts(function: ast.expr, facts: Facts) -> bool:
    name = facts.full_name(function)
    return name.startswith("flax.") and name.rpartition(".")[2] in OF_DICTS


def _is_bare(item: object, facts: Facts) -> bool | None:
    """Whether something is no container in which a key can be looked for; None if that is not known."""
    if isinstance(item, Container):
        return _is_bare_container(item, facts)
    if isinstance(item, Result):
        return True if item.name.startswith(ARRAYS) else None
    if not isinstance(item, Instance):
        return None
    is_container = {"__contains__", "__iter__"} & item.cls.scope.names
    return not (is_container or facts.derives_from(item.cls, *BUILTIN))


def _is_bare_container(item: Container, facts: Facts) -> bool | None:
    """Whether a container compares a key with its elements, which arrays of NumPy do for each of theirs; None if they may."""
    if isinstance(item.node, ast.Dict | ast.DictComp) or item.role.lower().endswith("dict"):
        return False
    elements = list(facts.flow.solver.at(("elements", item)))
    if any(
        isinstance(element, Result) and element.name.startswith("numpy.") for element in elements
    ):
        return True
    plain = (isinstance(element, Container | Result) for element in elements)
    return False if elements and all(plain) else None


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
    return any(
        isinstance(item, Result) and item.name.startswith(ARRAYS) for item in facts.objects(node)
    )


def _annotated_array(params: ast.expr, facts: Facts) -> bool:
    place = facts.flow.places.get(params)
    annotated = (
        found.expression for found in facts.flow.reading.annotations if found.target == place
    )
    return any(
        name.startswith(ARRAYS) for expression in annotated for name in facts.externals(expression)
    )
