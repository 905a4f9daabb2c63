"""Where an object may come into being, or get other fields, in a way that is not followed field by field."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods import vocabulary
from codemods.analysis.origins import Origins
from codemods.flow.binding import arguments_of, taking, values_of
from codemods.flow.holding import holders, unwrapped
from codemods.flow.library import PRYING
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
from codemods.sources.modules import Unit

Kind = Callable[[Object], bool]
Holders = set[Object]
CHANGES = (
    vocabulary.MAP_TREES_WITH_PATH
    | vocabulary.UNFLATTEN
    | vocabulary.ADD_OVER_DEVICES
    | vocabulary.CALL_BACK
)
"""What gives an object like its argument, with other leaves."""

READS = (
    (
        vocabulary.STORE
        | vocabulary.LIST_LEAVES
        | vocabulary.REDUCE_TREES
        | vocabulary.FLATTEN
        | vocabulary.SHAPES_OF
    )
    | {
        f"builtins.{name}"
        for name in ("bool", "hasattr", "hash", "id", "isinstance", "len", "print", "repr", "str")
    }
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

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins

    def changed(self, kind: Kind) -> Iterator[tuple[Unit, ast.expr]]:
        """Where an object like one of a kind is made of other leaves."""
        return self._changed(self._holders(kind))

    def _changed(self, holding: Holders) -> Iterator[tuple[Unit, ast.expr]]:
        for unit, call in self.facts.flow.reading.calls:
            held = [value for value in _arguments(call) if self._holds(value, holding)]
            if held and any(self._changes(name, call) for name in self._called(call)):
                yield unit, call
            match call.func:
                case ast.Attribute(attr="unflatten", value=structure) if self._holds(
                    structure, holding
                ):
                    yield unit, call

    def of_class(self, cls: Class, names: tuple[str, ...]) -> Iterator[tuple[Unit, ast.expr]]:
        """Where an instance of a class may be made, or get other fields of some names, and no call of the class shows it."""

        def is_one(item: Object) -> bool:
            return item == Instance(cls)

        program = self.facts.together(cls.unit)
        holding = self._holders(is_one)
        yield from self._heirs(cls)
        yield from self._changed(holding)
        for unit, node in self.facts.flow.reading.attributes:
            is_set = (
                not isinstance(node.ctx, ast.Load) and node.attr in names and unit.path in program
            )
            if (is_set and self._may_be(node.value, cls)) or self._is_taken_apart(node, cls):
                yield unit, node
        for unit, call in self.facts.flow.reading.calls:
            unseen = unit.path in program and self._is_replaced_unseen(call, names)
            if (
                unseen
                or self._escapes(unit, call, holding, cls)
                or self._is_filled(call, holding, names, program)
            ):
                yield unit, call
        for unit in self.facts.project.units:
            stored = (
                one
                for one in unit.nodes
                if isinstance(one, ast.Subscript) and not isinstance(one.ctx, ast.Load)
            )
            yield from ((unit, element) for element in stored if self.is_at(element.value, is_one))

    def is_at(self, node: ast.expr, kind: Kind) -> bool:
        return any(map(kind, self.facts.objects(node)))

    def _holders(self, kind: Kind) -> Holders:
        return holders(self.facts.flow.solver, kind, self._parts)

    def _holds(self, node: ast.expr, holding: Holders) -> bool:
        """Whether an expression may be one of those that hold something, at any depth."""
        return any(unwrapped(item) in holding for item in self.facts.objects(node))

    def _parts(self, item: Object) -> list[Place]:
        match item:
            case Container():
                return [("elements", item)]
            case Instance(cls=cls):
                return [
                    self.facts.flow.field(cls, name)
                    for name in self.facts.flow.fields_in_order(cls)
                ]
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
                return self.facts.full_name(function) in vocabulary.KEEP_VALUES and self._keeps(
                    value, leaf
                )
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
        known = (Class, Container, External, Function, Instance, Method, Thing)
        return not items or any(
            item == Instance(cls) or not isinstance(item, known) for item in items
        )

    def _is_taken_apart(self, node: ast.Attribute, cls: Class) -> bool:
        """Whether this is `__class__` or `__dict__` of an instance, or `_make` of the class."""
        if node.attr in ("__class__", "__dict__") and self.facts.may_be_one(node.value, cls):
            return True
        return (
            node.attr.startswith("_")
            and node.attr not in cls.scope.names
            and cls in self.facts.objects(node.value)
        )

    def _escapes(self, unit: Unit, call: ast.Call, holding: Holders, cls: Class) -> bool:
        """Whether a call gives an instance, or the class, to something that is not known to keep what counts."""
        values = _arguments(call)
        mentioned = any(self.is_at(value, lambda item: item is cls) for value in values)
        if not mentioned and not any(self._holds(value, holding) for value in values):
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
        changed: list[ast.expr] = []
        match call:
            case ast.Call(args=[value]) if "dataclasses.replace" in called and words & {
                None,
                *names,
            }:
                changed = [value]
            case ast.Call(func=ast.Attribute(attr="replace" | "_replace", value=value)) if words & {
                None,
                *names,
            }:
                changed = [value]
            case ast.Call(args=[value, ast.Constant(value=name), _]) if (
                name in names and "builtins.setattr" in called
            ):
                changed = [value]
            case ast.Call(
                func=ast.Attribute(attr="__setattr__", value=owner),
                args=[*values, ast.Constant(value=name), _],
            ):
                changed = [values[0] if values else owner] if name in names else []
            case ast.Call(args=values) if vocabulary.PARTIAL.intersection(called) and words & {
                None,
                *names,
            }:
                changed = values
        return not all([*self.facts.objects(value)] for value in changed)

    # Checkpoints

    def _is_filled(
        self, call: ast.Call, holding: Holders, names: tuple[str, ...], program: set[str]
    ) -> bool:
        """Whether an instance gets content that may be another than that of a whole one."""
        called = {*self._called(call)} & vocabulary.FILL
        if not called or not any(self._holds(value, holding) for value in _arguments(call)):
            return False
        if called & vocabulary.FROM_STATE_DICT:
            given = arguments_of(taking("target", "state", name=None), call)
            return given is None or not self._is_whole(given["state"])
        calls = self.facts.flow.reading.calls
        return any(
            unit.path in program and self._stores_other(other, names) for unit, other in calls
        )

    def _is_whole(self, node: ast.expr) -> bool:
        """Whether a state dict is as it was read or made."""
        if isinstance(node, ast.Name):
            value = self.origins.only_value(node)
            if value is None or self.origins.loads_of(node, node) != [node]:
                return False
            node = value
        made = vocabulary.TO_STATE_DICT | vocabulary.READ_PLAIN
        return isinstance(node, ast.Call) and not made.isdisjoint(self._called(node))

    def _stores_other(self, call: ast.Call, names: tuple[str, ...]) -> bool:
        """Whether a call stores a dict with some of these names, or one of which nothing is known."""
        called = {*self._called(call)}
        if called & vocabulary.TO_MSGPACK:
            return True
        held = [item for value in _arguments(call) for item in self.facts.objects(value)]
        dicts = (
            [item.node for item in held if isinstance(item, Container)]
            if called & vocabulary.STORE
            else []
        )
        keys = [key for node in dicts if isinstance(node, ast.Dict) for key in node.keys]
        said = {key.value for key in keys if isinstance(key, ast.Constant)}
        words = {word.arg for node in dicts if isinstance(node, ast.Call) for word in node.keywords}
        return not {*names}.isdisjoint(said | words)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [value.value if isinstance(value, ast.Starred) else value for value in values_of(call)]


def filled_in(item: Object) -> Iterator[ast.keyword]:
    """What partial applications give by name to what is called."""
    while isinstance(item, Partial):
        yield from item.call.keywords
        item = item.function
