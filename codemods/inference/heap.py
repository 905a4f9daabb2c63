"""What attributes and fields of objects are, and what classes have."""

from __future__ import annotations

import ast
from collections.abc import Generator
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.annotations import parts_of
from codemods.inference.binding import arguments_in
from codemods.inference.containers import (
    FUTURE,
    METHODS,
    RESULT,
)
from codemods.inference.objects import (
    Arguments,
    Class,
    Container,
    Declared,
    External,
    Frame,
    Function,
    InFrame,
    Instance,
    Key,
    Layout,
    LegacyObject,
    Made,
    Method,
    Module,
    Object,
    Opaque,
    Place,
    Record,
    Result,
    method,
    plain,
)
from codemods.inference.reading import (
    AttributeStore,
    FunctionNode,
    function_around,
    last_name,
)
from codemods.inference.solver import whole
from codemods.sources.modules import Unit

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]
Entries: TypeAlias = Generator[Place, tuple[Object, ...], list[tuple[Key, Place]]]
Names: TypeAlias = Generator[Place, tuple[Object, ...], list[str]]
Owner: TypeAlias = "Instance | Made"

REPLACING = ("replace", "_replace")
COMPUTED = ""
"""Stands for the name of an attribute that is set by a key which may be any."""


class Heap:
    """Equations of attributes and fields."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine

    # Attributes

    def attribute(self, place: Place, name: str) -> Answer:
        found: list[Object] = []
        for item in (yield place):
            found += yield from self.attribute_of(item, name)
        return found

    def attribute_of(self, item: Object, name: str) -> Answer:
        match item:
            case External():
                return self._of_external(item, name)
            case Module() | Instance() | Made() if name == "__dict__":
                return (yield from self.namespace(item))
            case Instance() | Made() if name == "__class__":
                return [item.cls]
            case Module():
                return (yield from self.engine.names.member(item, name))
            case Instance() | Made():
                return (yield from self._of_instance(item, name))
            case Opaque():
                found = [*(yield ("field", item, name))]
                return [*found, method(item, name)] if name in REPLACING else found
            case Class() if name == "__subclasses__":
                return [method(item, name)]
            case Class():
                found = yield from self.member_of(item, name, item)
                for cls in (yield ("ancestry", item)):
                    if isinstance(cls, Class):
                        found += yield ("attribute", cls.node, name)
                return found
            case InFrame(item=Container()) | Layout() | Container():
                return (yield from self._of_container(item, name))
            case Function(node=node) | InFrame(item=Function(node=node)):
                return [*(yield ("attribute", node, name))]
            case LegacyObject():
                found = yield from self.engine.library.attribute(
                    self.engine, item, name
                )
                if self.engine.library.method(item, name) is not None:
                    found.append(method(item, name))
                return found
            case Result() if self.engine.library.method(item, name) is not None:
                return [method(item, name)]
        return []

    def _of_external(self, item: External, name: str) -> list[Object]:
        if name == "__dict__":  # jax.numpy.__dict__["asarray"]
            return [item]
        member = f"{item.name}.{name}"
        return [External(member)] if self.engine.library.follows(member) else []

    def _of_container(self, item: Object, name: str) -> Answer:
        box = plain(item)
        found: list[Object] = []
        is_result = name == RESULT and box.role == FUTURE  # type: ignore[attr-defined]
        if name in METHODS or is_result:
            found.append(method(item, name))
        # config.optimizer, where `config` is a namespace, or a dict with attributes
        else:
            found += yield ("item in", item, name, True)
            found += yield ("attribute", box.node, name)  # type: ignore[attr-defined]
        return found

    def _of_instance(self, item: Owner, name: str) -> Answer:
        cls = item.cls
        found = [*(yield ("field", item, name))]
        found += yield from self.member_of(cls, name, item)
        if name in REPLACING:
            found.append(method(item, name))
        # class Cache(dict)
        if name in METHODS and not found:
            found += (
                method(box, name)
                for box in (yield from self.engine.elements.elements_of(item))
            )
        if (yield from self.has(cls, "__getattr__")):
            place = ("special", item, "__getattr__")
            found += yield ("invoked", place, Arguments(cls.unit, cls.node))
        return found

    # Classes

    def ancestry(self, cls: Class) -> Answer:
        """The class, its bases and theirs, nearest first; some are external."""
        found: dict[Object, None] = {cls: None}
        order: list[Object] = [cls]
        for item in order:  # grows while it is read
            if isinstance(item, Class):
                for base in (yield ("bases", item)):
                    if base not in found:
                        found[base] = None
                        order.append(base)
        return order

    def bases(self, cls: Class) -> Answer:
        found: list[Object] = []
        around = cls.scope.parent
        assert around is not None
        for base in cls.node.bases:
            # class Agent(library.Agent[State])
            node = base.value if isinstance(base, ast.Subscript) else base
            items = yield ("expression", node, None)
            kinds = Class | External | Record | Result
            found += (one for one in items if isinstance(one, kinds) and one is not cls)
        return found

    def heirs(self, cls: Class) -> Answer:
        """The classes that inherit from a class."""
        found: list[Object] = []
        for other in self.engine.index.heirs.get(cls.node.name, ()):
            if cls in (yield ("ancestry", other)):
                found.append(other)
                found += yield ("heirs", other)
        return found

    def defining(self, cls: Class, name: str) -> Answer:
        """The class and those of its bases that bind a name, nearest first."""
        if name not in self.engine.bound_in_classes:
            return []
        ancestry = yield ("ancestry", cls)
        classes = (item for item in ancestry if isinstance(item, Class))
        return [item for item in classes if name in item.scope.names]

    def has(self, cls: Class, name: str) -> Generator[Place, tuple[Object, ...], bool]:
        return bool((yield from self.defining(cls, name)))

    def member_of(self, cls: Class, name: str, owner: Class | Owner) -> Answer:
        """What an attribute gives that the class, or the nearest of its bases, binds."""
        nearest = next(iter((yield from self.defining(cls, name))), None)
        if nearest is None:
            return []
        assert isinstance(nearest, Class)
        found: list[Object] = []
        # optimizer = property(lambda self: self.state.optimizer)
        bindings = self.engine.bindings_of(nearest.scope, name)
        wrappers = {
            last_name(one.source.func)
            for one in bindings
            if isinstance(one.source, ast.Call)
        }
        for item in (yield ("variable", nearest.scope, name)):
            match item:
                case Function() as function:
                    bound = yield from self._bind(function, None, name, owner, wrappers)
                # what a decorator makes of a method
                case InFrame(item=Function() as function, frame=around):
                    defined = (one.node for one in bindings)
                    marks = wrappers.union(*map(self.engine.decorators, defined))
                    bound = yield from self._bind(function, around, name, owner, marks)
                case _:
                    bound = [item]
            found += bound
        return found

    def _bind(
        self,
        function: Function,
        around: Frame | None,
        name: str,
        owner: Class | Owner,
        wrappers: set[str],
    ) -> Answer:
        decorators = self.engine.decorators(function.node) | wrappers
        own: Object = function if around is None else InFrame(function, around)
        if "staticmethod" in decorators:
            return [own]
        if "classmethod" in decorators:
            cls = owner if isinstance(owner, Class) else owner.cls
            return [Method(cls, name, function)]
        # Trainer.step: without an instance, `self` is an argument like others
        if isinstance(owner, Class):
            return [own]
        if decorators & {"property", "cached_property"}:
            frame = self.engine.frame(function, None, around, owner)
            return [*(yield self.engine.returned(function.node, frame))]
        if "setter" in decorators:
            return []
        bound = method(owner, name, function)
        return [bound if around is None else InFrame(bound, around)]

    def fields_in_order(self, cls: Class) -> Names:
        """The fields of a dataclass, NamedTuple or class of attrs, inherited ones first."""
        names: dict[str, None] = {}
        for ancestor in reversed((yield ("ancestry", cls))):
            # class State(namedtuple("State", "params step"))
            if isinstance(ancestor, Record):
                names.update(dict.fromkeys(ancestor.fields))
            if isinstance(ancestor, Class):
                for statement in ancestor.node.body:
                    match statement:
                        # rate: float = 0.1, rate = attr.ib()
                        case (
                            ast.AnnAssign(target=ast.Name(id=name))
                            | ast.Assign(
                                targets=[ast.Name(id=name)],
                                value=ast.Call(
                                    func=ast.Attribute(attr="ib" | "attrib")
                                ),
                            )
                        ):
                            names[name] = None
        return list(names)

    # Fields

    def field(self, owner: Owner, name: str) -> Answer:
        """What a field of an instance may be; without the call that makes it, of any instance."""
        if isinstance(owner, Opaque):
            return (yield from self._stored_in_unknown(owner, name))
        found: list[Object] = []
        ancestry = yield ("ancestry", owner.cls)
        for cls in ancestry:
            if isinstance(cls, Class):
                found += yield ("seeded field", cls, name)
        if isinstance(owner, Made):
            found += yield from self._given_to(owner, name)
            if owner.source is not None:
                return found
        elif name in self.engine.index.keywords or name in (
            str(one) for one in (yield ("fields in order", owner.cls))
        ):
            for made in (yield ("instances", owner.cls)):
                assert isinstance(made, Made)
                found += yield from self._given_to(made, name, is_any=True)
        found += yield from self._stored_in(owner, name, ancestry)
        for cls in ancestry if not found else ():
            for statement in cls.node.body if isinstance(cls, Class) else ():
                match statement:
                    case ast.AnnAssign(target=ast.Name(id=word)) if word == name:
                        found += yield ("declared by", statement.annotation)
        return found

    def declared(self, annotation: ast.expr) -> Answer:
        """What a value may be that has an annotation, and of which no more is known."""
        found: list[Object] = []
        match annotation:
            case ast.Name() | ast.Attribute():
                items = yield ("expression", annotation, None)
                found += (Instance(item) for item in items if isinstance(item, Class))
            case ast.Constant(value=str()):
                inner = self.engine.quoted(annotation)
                if inner is not None:
                    found += yield ("declared by", inner)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                found += yield ("declared by", left)
                found += yield ("declared by", right)
            case ast.Subscript(
                value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner
            ):
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                elements: list[tuple[Key, Place]] = []
                for part, steps in parts_of(annotation, name, parts):
                    if not steps:
                        found += yield ("declared by", part)
                    elif steps[0][1] == "returned":
                        found.append(Declared(annotation))
                    elif (yield ("declared by", part)):
                        elements.append((steps[0][1], ("declared by", part)))
                if elements:
                    box = Container(annotation, "declared")
                    found.append(Layout(box, tuple(elements)))
        return found

    def _given_to(self, made: Made, name: str, is_any: bool = False) -> Answer:
        """What the call that makes an instance gives to a field."""
        index = None
        if made.source is None:
            if (yield from self.has(made.cls, "__init__")):
                return []
            # a dataclass: the arguments are for its fields
            names = [*map(str, (yield ("fields in order", made.cls)))]
            index = names.index(name) if name in names else None
        found: list[Object] = []
        for place in made.arguments.given(index, name):
            found += yield place
        is_taken = made.source is not None and made.arguments.keyword(name) is None
        if is_taken and not is_any:
            found += yield ("field of", made.source, made.cls, name)
        return found

    def field_of(self, place: Place, cls: Class, name: str) -> Answer:
        for item in (yield place):
            if isinstance(item, Instance | Made):
                yield whole(("field", item, name))
        return []

    def _stored_in(
        self, owner: Owner, name: str, ancestry: tuple[Object, ...]
    ) -> Answer:
        found: list[Object] = []
        index = self.engine.index
        for store in (*index.stores.get(name, ()), *index.stores_by_key):
            method = self.engine.method_storing(store)
            if method is None:
                found += yield from self._stored_outside(owner, store, ancestry)
            elif self.engine.class_of_method(method) in ancestry:
                frame = yield from self._frame_of(owner, method, store)
                found += yield self.engine.bound(store.binding, frame)
        return found

    def _frame_of(
        self, owner: Owner, method: Function, store: AttributeStore
    ) -> Generator[Place, tuple[Object, ...], Frame | None]:
        """The frame in which a method sets a field of `self`."""
        around = function_around(self.engine.scopes[store.target])
        if around is not method.node:
            return None
        arguments = None
        if not isinstance(method.node, ast.Lambda) and method.node.name == "__init__":
            arguments = yield from self._given_to_constructor(owner, method)
        if arguments is None and not isinstance(owner, Made):
            return None
        return self.engine.frame(method, arguments, None, owner)

    def _given_to_constructor(
        self, owner: Owner, method: Function
    ) -> Generator[Place, tuple[Object, ...], Arguments | None]:
        """What the constructor of one of its classes is given for an instance; None if not known.

        The first gets what the call gives that makes the instance, that of a base what the one
        before it says: `super().__init__(optimizer)`.
        """
        arguments = owner.arguments if isinstance(owner, Made) else None
        for cls in (yield from self.defining(owner.cls, "__init__")):
            assert isinstance(cls, Class)
            for item in (yield ("variable", cls.scope, "__init__")):
                if item == method or not isinstance(item, Function):
                    return arguments if item == method else None
                frame = self.engine.frame(item, arguments, None, owner)
                calls = _inherited_calls(item.node)
                if not calls or frame is None:
                    return None
                [(call, caller), *_] = calls
                arguments = arguments_in(item.unit, call, frame)
                # Base.__init__(self, optimizer)
                if not isinstance(caller, ast.Call):
                    arguments = arguments.behind_first()
        return None

    def _stored_in_unknown(self, owner: Opaque, name: str) -> Answer:
        """What `state.best = …` sets, of a state of unknown origin."""
        found: list[Object] = []
        index = self.engine.index
        for store in (*index.stores.get(name, ()), *index.stores_by_key):
            if owner in (yield ("expression", store.owner, None)):
                found += yield self.engine.bound(store.binding, None)
        return found

    def _stored_outside(
        self, owner: Owner, store: AttributeStore, ancestry: tuple[Object, ...]
    ) -> Answer:
        """What `trainer.optimizer = …` or `Trainer.optimizer = …` sets."""
        for item in (yield ("expression", store.owner, None)):
            if (
                item is owner
                or item in ancestry
                or (
                    isinstance(item, Instance | Made)
                    and item.cls is owner.cls
                    and (isinstance(item, Instance) or isinstance(owner, Instance))
                )
            ):
                return [*(yield self.engine.bound(store.binding, None))]
            # made in the course of the call in which the store is
            if (
                isinstance(item, Made)
                and isinstance(owner, Made)
                and item.arguments.node is owner.arguments.node
            ):
                frame = owner.arguments.frame
                return [*(yield self.engine.bound(store.binding, frame))]
        return []

    def field_names(self, cls: Class) -> Names:
        """The names of all fields of an instance, inherited or not."""
        classes = [one for one in (yield ("ancestry", cls)) if isinstance(one, Class)]
        names = chain.from_iterable(map(self.engine.fields_named, classes))
        return [*dict.fromkeys(names)]

    def namespace(self, item: Object) -> Answer:
        """The dict of a module's variables, or of an instance's fields: `vars(item)`.

        That which has them is given, too: it knows what it has under a literal key.
        """
        match item:
            case Module(unit=Unit() as unit):
                scope = self.engine.module(unit)
                named = [(one, ("variable", scope, one)) for one in sorted(scope.names)]
                computed = (None, ("set from outside", scope, COMPUTED))
                box = Container(unit.tree, "namespace")
                return [item, Layout(box, (*named, computed))]
            case Instance(cls=cls) | Made(cls=cls):
                names = yield from self.field_names(cls)
                fields = [(one, ("field", item, one)) for one in (*names, COMPUTED)]
                parts = ((name or None, place) for name, place in fields)
                return [item, Layout(Container(cls.node, "namespace"), tuple(parts))]
            case External() | Container() | Layout() | InFrame(item=Container()):
                return [item]
        return []

    def any_field(self, cls: Class) -> Answer:
        """What any field of any instance may be."""
        _, fields = yield from self.namespace(Instance(cls))
        return [*(yield ("item in", fields, None))]


def _inherited_calls(constructor: FunctionNode) -> list[tuple[ast.Call, ast.expr]]:
    """The calls of other constructors within one, with what these are of: `super()`, `Base`."""
    return [
        (node, node.func.value)
        for node in ast.walk(constructor)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__init__"
    ]
