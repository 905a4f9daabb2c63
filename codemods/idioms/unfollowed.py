"""Where an object may be made, or get other fields, in a way that is not followed by field."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods import vocabulary
from codemods.analysis.origins import Origins
from codemods.inference.binding import values_of
from codemods.inference.holders import Holders, unwrapped
from codemods.inference.library import PRYING
from codemods.inference.objects import (
    Class,
    Container,
    Declared,
    Derivative,
    External,
    Function,
    Instance,
    LegacyObject,
    Method,
    Object,
    Partial,
    Place,
    Record,
)
from codemods.inference.reading import last_name
from codemods.sources.modules import Unit
from codemods.vocabulary import full_names

Kind = Callable[[Object], bool]
"""A predicate for the objects in question."""

CHANGES = (
    vocabulary.MAP_TREES_WITH_PATH
    | vocabulary.UNFLATTEN
    | vocabulary.ADD_OVER_DEVICES
    | vocabulary.CALL_BACK
)
"""What gives an object like its argument, with other leaves."""

READS = (
    (vocabulary.STORE | vocabulary.LIST_LEAVES | vocabulary.REDUCE_TREES)
    | (vocabulary.FLATTEN | vocabulary.SHAPES_OF)
    | full_names("builtins", "bool hasattr hash id isinstance len print repr str")
    | full_names("dataclasses", "asdict astuple fields replace")
)
"""What makes no other object of the same class, but for `replace`, whose calls are seen."""

MENTIONS = full_names("builtins", "isinstance issubclass") | full_names(
    "typing", "cast TypeVar"
)
"""What takes a class, and makes no object of it."""

KNOWN = vocabulary.PYTREES | vocabulary.FILL | READS | MENTIONS
FOLLOWED = (Class, Container, Declared, Derivative, Function, Instance, Method, Record)
"""What is called without losing sight of what it is given."""

ARRAY_METHODS = ("block_until_ready", "copy", "reshape", "squeeze")
DECORATORS = vocabulary.STRUCTS | {"dataclasses.dataclass"}


class UnfollowedChanges:
    """Finds such places for objects of some kind."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def changed(self, kind: Kind) -> Iterator[tuple[Unit, ast.expr]]:
        """Where an object like one of a kind is made of other leaves."""
        return self._changed(self._holders(kind))

    def _changed(self, holders: Holders) -> Iterator[tuple[Unit, ast.expr]]:
        for unit, call in self.facts.flow.reading.calls:
            if any(self._changes(name, call) for name in self._called(call)) and any(
                self._holds(value, holders) for value in _arguments(call)
            ):
                yield unit, call
            match call.func:
                # structure.unflatten(leaves)
                case ast.Attribute(attr="unflatten", value=structure):
                    if self._holds(structure, holders):
                        yield unit, call

    def of_class(
        self,
        cls: Class,
        names: tuple[str, ...],
    ) -> Iterator[tuple[Unit, ast.expr]]:
        """Where an instance may be made but by the class, or get other fields of some names."""

        def is_one(item: Object) -> bool:
            return item == Instance(cls)

        program = self.facts.together(cls.unit)
        holders = self._holders(is_one)
        yield from self._heirs(cls)
        yield from self._changed(holders)
        for unit, node in self.facts.flow.reading.attributes:
            # state.step = 0
            is_stored = not isinstance(node.ctx, ast.Load) and node.attr in names
            is_set = (
                is_stored and unit.path in program and self._may_be(node.value, cls)
            )
            if is_set or self._is_taken_apart(node, cls):
                yield unit, node
        for unit, call in self.facts.flow.reading.calls:
            is_change = unit.path in program and self._is_replaced_unseen(call, names)
            is_change = is_change or self._escapes(call, holders, cls)
            if is_change or self._is_filled(call, holders, program):
                yield unit, call
        for store in self.facts.flow.engine.index.item_stores:
            if self.is_at(store.target.value, is_one):
                yield store.binding.scope.unit, store.target

    def is_at(self, node: ast.expr, kind: Kind) -> bool:
        """Whether an expression may be an object of a kind."""
        return any(map(kind, self.facts.objects(node)))

    def _holders(self, kind: Kind) -> Holders:
        return Holders(self.facts.flow.solver, kind, self._parts)

    def _holds(self, node: ast.expr, holders: Holders) -> bool:
        """Whether an expression may be one of those that hold something, at any depth."""
        return any(unwrapped(item) in holders for item in self.facts.objects(node))

    def _parts(self, item: Object) -> list[Place]:
        """The places of the objects that an object has, or that a function returns."""
        match item:
            case Container():
                return [("elements", item)]
            case Instance(cls=cls):
                names = self.facts.flow.fields_in_order(cls)
                return [self.facts.flow.field(cls, name) for name in names]
            case Function(node=node):
                return [("return", node)]
        return []

    def _called(self, call: ast.Call) -> list[str]:
        """The external functions, or methods of what they make, that are called, also in part."""
        items = [unwrapped(item) for item in self.facts.objects(call.func)]
        # optim.Adam().create(params), of which no object is known
        if not items and isinstance(call.func, ast.Attribute):
            made = self.origins.expanded(call.func.value)
            if not isinstance(made, ast.Call):
                return []
            maker = self.facts.full_name(made.func)
            return [f"{maker}.{call.func.attr}"] if maker else []
        return [item.name for item in items if isinstance(item, External)]

    # Trees

    def _changes(self, name: str, call: ast.Call) -> bool:
        """Whether a call of an external function makes an object of other leaves."""
        if name not in vocabulary.MAP_TREES:
            return name in CHANGES
        # jax.tree_map(lambda x: x[0], state)
        if len(call.args) == 2 and not call.keywords:
            return not self._keeps_values(call.args[0])
        return True

    def _keeps_values(self, function: ast.expr) -> bool:
        """Whether a function of a leaf gives the same numbers, whatever leaf it is."""
        if self.facts.full_name(function) in vocabulary.KEEP_VALUES:
            return True
        match self.origins.expanded(function):
            # lambda x: x[0]
            case ast.Lambda(args=ast.arguments(args=[leaf]), body=body):
                return self._keeps(body, leaf.arg)
        return False

    def _keeps(self, node: ast.expr, leaf: str) -> bool:
        """Whether an expression has the numbers of a leaf, or some of them."""
        match node:
            case ast.Name(id=name):
                return name == leaf
            # x[0]
            case ast.Subscript(value=value):
                return self._keeps(value, leaf)
            # [x] * jax.device_count()
            case (
                ast.List(elts=[value])
                | ast.BinOp(left=ast.List(elts=[value]), op=ast.Mult())
            ):
                return self._keeps(value, leaf)
            # x.reshape(-1)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if (
                name in ARRAY_METHODS
            ):
                return self._keeps(value, leaf)
            # jnp.asarray(x)
            case ast.Call(func=function, args=[value, *_]):
                keeps_values = self.facts.full_name(function) in vocabulary.KEEP_VALUES
                return keeps_values and self._keeps(value, leaf)
        return False

    # Classes

    def _heirs(self, cls: Class) -> Iterator[tuple[Unit, ast.expr]]:
        """The bases by which other classes derive from a class, and its unknown decorators."""
        for heir in self.facts.flow.reading.classes:
            if heir is not cls and cls in self.facts.flow.ancestry(heir):
                yield from ((heir.unit, base) for base in heir.node.bases)
        for decorator in cls.node.decorator_list:
            # dataclasses.dataclass(frozen=True)
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            names = {*self.facts.externals(function), self.facts.full_name(function)}
            if DECORATORS.isdisjoint(names):
                yield cls.unit, decorator

    def _may_be(self, node: ast.expr, cls: Class) -> bool:
        """Whether an expression is an instance, or something of which nothing is known."""
        items = [*self.facts.objects(node)]
        if not items:
            return True
        known = (Class, Container, External, Function, Instance, Method, LegacyObject)
        for item in items:
            if item == Instance(cls):
                return True
            if not isinstance(item, known):
                return True
        return False

    def _is_taken_apart(self, node: ast.Attribute, cls: Class) -> bool:
        """Whether this is `__class__` or `__dict__` of an instance, or `_make` of the class."""
        name = node.attr
        if name in ("__class__", "__dict__") and self.facts.may_be_one(node.value, cls):
            return True
        # a name of its own, such as `_default`
        if not name.startswith("_") or name in cls.scope.names:
            return False
        return cls in self.facts.objects(node.value)

    def _escapes(
        self,
        call: ast.Call,
        holders: Holders,
        cls: Class,
    ) -> bool:
        """Whether a call gives an instance, or the class, to something that may change it."""

        def is_class(item: Object) -> bool:
            return item is cls

        values = _arguments(call)
        mentioned = any(self.is_at(value, is_class) for value in values)
        if not mentioned and not any(self._holds(value, holders) for value in values):
            return False
        items = [unwrapped(item) for item in self.facts.objects(call.func)]
        names = {*self._called(call)}
        # typing.cast(State, restored) makes none, and other functions may
        if mentioned and names - MENTIONS:
            return True
        followed = any(isinstance(item, FOLLOWED) for item in items) or bool(names)
        return not followed or not all(map(self._is_harmless, names))

    def _is_harmless(self, name: str) -> bool:
        """Whether a call of an external function neither makes nor changes an object."""
        # type(state)(0, optimizer)
        if name in PRYING or name in ("builtins.getattr", "builtins.type"):
            return False
        return name in KNOWN or self.facts.flow.library.function(name) is not None

    def _is_replaced_unseen(self, call: ast.Call, names: tuple[str, ...]) -> bool:
        """Whether this is `x.replace(step=…)` of something unknown, or the like."""
        words = {word.arg for word in call.keywords}
        sets_one = not words.isdisjoint((None, *names))  # None: `**changes`
        called = {*self._called(call)}
        changed: list[ast.expr] = []
        match call:
            # setattr(state, "step", 0), or state.__setattr__("step", 0)
            case ast.Call(
                func=function, args=[*values, ast.Constant(value=name), _]
            ) if name in names and last_name(function) in ("setattr", "__setattr__"):
                owner = function.value if isinstance(function, ast.Attribute) else None
                changed = [one for one in (*values, owner) if one is not None][:1]
            # dataclasses.replace(state, step=0)
            case ast.Call(args=[value]) if "dataclasses.replace" in called and sets_one:
                changed = [value]
            # state.replace(step=0)
            case ast.Call(
                func=ast.Attribute(attr="replace" | "_replace", value=value)
            ) if sets_one:
                changed = [value]
            # partial(state.replace, step=0), not partial(package.solve, **options)
            case ast.Call(args=values) if sets_one and called & vocabulary.PARTIAL:
                origins = self.facts.flow.origin_names
                changed = [value for value in values if "" in origins(value)]
        return not all([*self.facts.objects(value)] for value in changed)

    # Checkpoints

    def _is_filled(
        self,
        call: ast.Call,
        holders: Holders,
        program: set[str],
    ) -> bool:
        """Whether an instance gets content that may be another than that of a whole one."""
        called = {*self._called(call)} & vocabulary.FILL
        if not called:
            return False
        if not any(self._holds(value, holders) for value in _arguments(call)):
            return False
        # flax.serialization.from_state_dict(state, stored)
        if called & vocabulary.FROM_STATE_DICT:
            return True
        calls = self.facts.flow.reading.calls
        return any(
            unit.path in program and self._stores_other(one) for unit, one in calls
        )

    def _stores_other(self, call: ast.Call) -> bool:
        """Whether a call stores a container, which may have other content under the same names."""
        called = {*self._called(call)}
        if called & vocabulary.TO_MSGPACK:
            return True
        if not called & vocabulary.STORE:
            return False
        items = (item for one in _arguments(call) for item in self.facts.objects(one))
        return any(isinstance(item, Container) for item in items)


def _arguments(call: ast.Call) -> list[ast.expr]:
    """The values of the arguments of a call, unpacked ones included."""
    return [
        value.value if isinstance(value, ast.Starred) else value
        for value in values_of(call)
    ]


def filled_in(item: Object) -> Iterator[ast.keyword]:
    """What partial applications give by name to what is called."""
    while isinstance(item, Partial):
        yield from item.call.keywords
        item = item.function
