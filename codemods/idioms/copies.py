"""Where an object may come into being, or get other fields, in a way that is not followed field by field."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods import vocabulary
from codemods.dataflow.binding import arguments_of, taking, values_of
from codemods.facts import Facts
from codemods.flow.library import PRYING
from codemods.flow.modules import Unit
from codemods.flow.objects import (
    Class,
    Container,
    Declared,
    Derivative,
    External,
    Function,
    Instance,
    Method,
    Object,
    Partial,
    Place,
    Record,
    Thing,
)
from codemods.origins import Origins

DEEPEST = 5
"""How deep in containers and other objects an object is looked for."""

Kind = Callable[[Object], bool]
CHANGES = vocabulary.MAP_TREES_WITH_PATH | vocabulary.UNFLATTEN | vocabulary.ADD_OVER_DEVICES | vocabulary.CALL_BACK
"""What gives an object like its argument, with other leaves."""

READS = (
    (vocabulary.STORE | vocabulary.LIST_LEAVES | vocabulary.REDUCE_TREES | vocabulary.FLATTEN | vocabulary.SHAPES_OF)
    | {f"builtins.{name}" for name in ("bool", "hasattr", "hash", "id", "isinstance", "len", "print", "repr", "str")}
    | {"dataclasses.asdict", "dataclasses.astuple", "dataclasses.fields", "dataclasses.replace"}
)
"""What makes nothing of an object that has its class; what `replace` changes is seen where it is called."""

MENTIONS = ("builtins.isinstance", "builtins.issubclass", "typing.cast", "typing.TypeVar")
"""What takes a class, and makes no object of it."""

KNOWN = vocabulary.PYTREES | vocabulary.FILL | READS | {*MENTIONS}
FOLLOWED = (Class, Container, Declared, Derivative, Function, Instance, Method, Record)
"""What is called without losing sight of what it is given."""

DECORATORS = vocabulary.STRUCTS | {"dataclasses.dataclass"}
ARRAY_METHODS = ("block_until_ready", "copy", "reshape", "squeeze")


class Copies:
    """Finds such places for objects of some kind."""

    def __init__(self, facts: Facts, origins: Origins) -> None:
        self.facts = facts
        self.origins = origins
        self._contents: dict[Place, dict[Object, None]] = {}

    def changed(self, kind: Kind) -> Iterator[tuple[Unit, ast.expr]]:
        """Where an object like one of a kind is made of other leaves."""
        for unit, call in self.facts.flow.reading.calls:
            held = [value for value in _arguments(call) if self.holds(value, kind)]
            if held and any(self._changes(name, call) for name in self._called(call)):
                yield unit, call
            match call.func:
                case ast.Attribute(attr="unflatten", value=structure) if self.holds(structure, kind):
                    yield unit, call

    def of_class(self, cls: Class, names: tuple[str, ...]) -> Iterator[tuple[Unit, ast.expr]]:
        """Where an instance of a class may be made, or get other fields of some names, and no call of the class shows it."""

        def is_one(item: Object) -> bool:
            return isinstance(item, Instance) and item.cls is cls

        program = self.facts.together(cls.unit)
        yield from self._heirs(cls)
        yield from self.changed(is_one)
        for unit, node in self.facts.flow.reading.attributes:
            if (self._is_set(node, cls, names) and unit.path in program) or self._is_taken_apart(node, cls):
                yield unit, node
        for unit, call in self.facts.flow.reading.calls:
            unseen = unit.path in program and self._is_replaced_unseen(call, names)
            if unseen or self._escapes(unit, call, is_one, cls) or self._is_filled(call, is_one, names, program):
                yield unit, call
        for unit in self.facts.project.units:
            stored = (one for one in unit.nodes if isinstance(one, ast.Subscript) and not isinstance(one.ctx, ast.Load))
            yield from ((unit, element) for element in stored if self.is_at(element.value, is_one))

    def is_at(self, node: ast.expr, kind: Kind) -> bool:
        return any(map(kind, self.facts.objects(node)))

    def holds(self, node: ast.expr, kind: Kind) -> bool:
        """Whether an expression may be an object of a kind, or hold one at any depth."""
        place = self.facts.flow.places.get(node)
        return place is not None and any(map(kind, self._within(place)))

    def _within(self, place: Place) -> dict[Object, None]:
        """All objects at a place, and in those, each once."""
        if place not in self._contents:
            found: dict[Object, None] = {}
            layer = [place]
            for _ in range(DEEPEST):
                items = [item for one in layer for item in self.facts.flow.solver.at(one) if item not in found]
                found.update(dict.fromkeys(items))
                layer = [inner for item in dict.fromkeys(items) for inner in self._parts(item)]
            self._contents[place] = found
        return self._contents[place]

    def _parts(self, item: Object) -> list[Place]:
        match item:
            case Container():
                return [("elements", item)]
            case Instance(cls=cls):
                return [self.facts.flow.field(cls, name) for name in self.facts.flow.fields_in_order(cls)]
            case Function(node=node):
                return [("return", node)]
        return []

    def _called(self, call: ast.Call) -> list[str]:
        """The external functions that a call may be of, behind partial applications; or a method of what one made."""
        items = [unwrapped(item) for item in self.facts.objects(call.func)]
        if not items and isinstance(call.func, ast.Attribute):
            made = self.origins.expanded(call.func.value)
            maker = self.facts.full_name(made.func) if isinstance(made, ast.Call) else ""
            return [f"{maker}.{call.func.attr}"] if maker else []
        return [item.name for item in items if isinstance(item, External)]

    # Trees

    def _changes(self, name: str, call: ast.Call) -> bool:
        if name not in vocabulary.MAP_TREES:
            return name in CHANGES
        return not (len(call.args) == 2 and not call.keywords and self._keeps_values(call.args[0]))

    def _keeps_values(self, function: ast.expr) -> bool:
        """Whether a function of a leaf gives the same numbers, whatever leaf it is."""
        if self.facts.full_name(function) in vocabulary.KEEP_VALUES:
            return True
        function = self.origins.expanded(function)
        if not isinstance(function, ast.Lambda) or len(function.args.args) != 1:
            return False
        return self._keeps(function.body, function.args.args[0].arg)

    def _keeps(self, node: ast.expr, leaf: str) -> bool:
        match node:
            case ast.Name(id=name):
                return name == leaf
            case ast.Subscript(value=value):
                return self._keeps(value, leaf)
            case ast.List(elts=[value]) | ast.BinOp(left=ast.List(elts=[value]), op=ast.Mult()):
                return self._keeps(value, leaf)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in ARRAY_METHODS:
                return self._keeps(value, leaf)
            case ast.Call(func=function, args=[value, *_]):
                return self.facts.full_name(function) in vocabulary.KEEP_VALUES and self._keeps(value, leaf)
        return False

    # Classes

    def _heirs(self, cls: Class) -> Iterator[tuple[Unit, ast.expr]]:
        for heir in self.facts.flow.reading.classes:
            if heir is not cls and cls in self.facts.flow.ancestry(heir):
                yield from ((heir.unit, base) for base in heir.node.bases)
        for decorator in cls.node.decorator_list:
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if not DECORATORS & {*self.facts.externals(function), self.facts.full_name(function)}:
                yield cls.unit, decorator

    def _may_be(self, node: ast.expr, cls: Class) -> bool:
        """Whether an expression is an instance, or something of which nothing is known."""
        items = [*self.facts.objects(node)]
        known = (Class, Container, External, Function, Method)
        return not items or any(
            item.cls is cls if isinstance(item, Instance) else not isinstance(item, (*known, Thing)) for item in items
        )

    def _is_set(self, node: ast.Attribute, cls: Class, names: tuple[str, ...]) -> bool:
        return not isinstance(node.ctx, ast.Load) and node.attr in names and self._may_be(node.value, cls)

    def _is_taken_apart(self, node: ast.Attribute, cls: Class) -> bool:
        """Whether this is `__class__` or `__dict__` of an instance, or `_make` of the class."""
        items = [*self.facts.objects(node.value)]
        instance = any(isinstance(item, Instance) and item.cls is cls for item in items)
        own = cls in items and node.attr not in cls.scope.names
        return (instance and node.attr in ("__class__", "__dict__")) or (own and node.attr.startswith("_"))

    def _escapes(self, unit: Unit, call: ast.Call, is_one: Kind, cls: Class) -> bool:
        """Whether a call gives an instance, or the class, to something that is not known to keep what counts."""
        values = _arguments(call)
        mentioned = any(self.is_at(value, lambda item: item is cls) for value in values)
        if not mentioned and not any(self.holds(value, is_one) for value in values):
            return False
        items = [unwrapped(item) for item in self.facts.objects(call.func)]
        names = {*self._called(call)}
        if mentioned and names - {*MENTIONS}:
            return True
        if "builtins.type" in names:
            return not isinstance(unit.parents.get(call), ast.Compare | ast.FormattedValue)
        followed = any(isinstance(item, FOLLOWED) for item in items) or bool(names)
        return not followed or not all(self._is_harmless(name, call) for name in names)

    def _is_harmless(self, name: str, call: ast.Call) -> bool:
        if name == "builtins.getattr":
            match call.args:
                case [_, ast.Constant(value=str(attribute)), *_]:
                    return not attribute.startswith("_")
            return False
        known = self.facts.flow.library.function(name) is not None or name in KNOWN
        return known and name not in PRYING

    def _is_replaced_unseen(self, call: ast.Call, names: tuple[str, ...]) -> bool:
        """Whether this is `x.replace(step=…)` of something unknown, or the like."""
        words = {word.arg for word in call.keywords}
        called = self._called(call)
        match call:
            case ast.Call(args=[value]) if "dataclasses.replace" in called and words & {None, *names}:
                return not [*self.facts.objects(value)]
            case ast.Call(func=ast.Attribute(attr="replace" | "_replace", value=value)) if words & {None, *names}:
                return not [*self.facts.objects(value)]
            case ast.Call(args=[value, ast.Constant(value=name), _]) if name in names and "builtins.setattr" in called:
                return not [*self.facts.objects(value)]
            case ast.Call(
                func=ast.Attribute(attr="__setattr__", value=owner), args=[*values, ast.Constant(value=name), _]
            ):
                return name in names and not [*self.facts.objects(values[0] if values else owner)]
            case ast.Call(args=values) if vocabulary.PARTIAL.intersection(called) and words & {None, *names}:
                return not all([*self.facts.objects(value)] for value in values)
        return False

    # Checkpoints

    def _is_filled(self, call: ast.Call, is_one: Kind, names: tuple[str, ...], program: set[str]) -> bool:
        """Whether an instance gets content that may be another than that of a whole one."""
        called = {*self._called(call)} & vocabulary.FILL
        if not called or not any(self.holds(value, is_one) for value in _arguments(call)):
            return False
        if called & vocabulary.FROM_STATE_DICT:
            given = arguments_of(taking("target", "state", name=None), call)
            return given is None or not self._is_whole(given["state"])
        calls = self.facts.flow.reading.calls
        return any(unit.path in program and self._stores_other(other, names) for unit, other in calls)

    def _is_whole(self, node: ast.expr) -> bool:
        """Whether a state dict is as it was read or made."""
        if isinstance(node, ast.Name):
            variable = self.origins.variable(node)
            value = self.origins.value(variable) if variable is not None else None
            if variable is None or value is None or self.origins.loads(variable) != [node]:
                return False
            node = value
        made = vocabulary.TO_STATE_DICT | vocabulary.READ_PLAIN
        return isinstance(node, ast.Call) and bool(made & {*self._called(node)})

    def _stores_other(self, call: ast.Call, names: tuple[str, ...]) -> bool:
        """Whether a call stores a dict with some of these names, or one of which nothing is known."""
        called = {*self._called(call)}
        if called & vocabulary.TO_MSGPACK:
            return True
        held = (
            [item for value in _arguments(call) for item in self.facts.objects(value)]
            if called & vocabulary.STORE
            else []
        )
        dicts = [item.node for item in held if isinstance(item, Container)]
        keys = {
            key.value
            for node in dicts
            if isinstance(node, ast.Dict)
            for key in node.keys
            if isinstance(key, ast.Constant)
        }
        words = {word.arg for node in dicts if isinstance(node, ast.Call) for word in node.keywords}
        return not {*names}.isdisjoint(keys | words)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [value.value if isinstance(value, ast.Starred) else value for value in values_of(call)]


def unwrapped(item: Object) -> Object:
    """What is called behind partial applications."""
    while isinstance(item, Partial):
        item = item.function
    return item


def filled_in(item: Object) -> Iterator[ast.keyword]:
    """What partial applications give by name to what is called."""
    while isinstance(item, Partial):
        yield from item.call.keywords
        item = item.function


def is_of_class(item: Object, cls: Class) -> bool:
    """Whether a call of something is a call of a class."""
    return unwrapped(item) is cls
