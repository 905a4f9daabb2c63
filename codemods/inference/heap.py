"""What attributes, fields and elements of objects are."""

from __future__ import annotations

import ast
from collections.abc import Generator
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.annotations import parts_of
from codemods.inference.binding import values_of
from codemods.inference.containers import (
    CHANGING,
    FUTURE,
    GENERATOR,
    MERGING,
    METHODS,
    READING,
    RESULT,
    SAME,
    SHIFTING,
    STORING,
    is_container_class,
    may_hold_pairs,
)
from codemods.inference.objects import (
    SHIFTED,
    Arguments,
    Called,
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
    Stored,
    method,
    plain,
)
from codemods.inference.reading import (
    AttributeStore,
    FunctionNode,
    ItemStore,
    function_around,
    key_of,
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
    """Equations of attributes, fields and elements."""

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
            found += (method(box, name) for box in (yield from self.elements_of(item)))
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

    def elements_of(self, item: Object) -> Answer:
        """The container that an object is, or that an instance of `class Cache(dict)` has."""
        box = plain(item)
        if isinstance(box, Container):
            return [item]
        if not isinstance(item, Instance | Made):
            return []
        ancestry = yield ("ancestry", item.cls)
        if not any(map(is_container_class, ancestry)):
            return []
        # what a method of a base puts in, its heirs have
        *_, first = (one for one in ancestry if isinstance(one, Class))
        return [Container(first.node, "elements")]

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
                arguments = self.engine.arguments(item.unit, call, frame)
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

    # Items

    def item(self, place: Place, key: Key) -> Answer:
        """What `x[key]` may be, or any element of it."""
        found: list[Object] = []
        for one in (yield place):
            found += yield from self.item_of(one, key)
        return found

    def item_of(self, item: Object, key: Key) -> Answer:
        """What `x[key]` may be, or any element of it; what is copied goes to the asking place."""
        match item:
            case Container() | Layout() | InFrame(item=Container()):
                yield whole(("item in", item, key))
                # to_state_dict(values)["0"]: a list has its indices as keys there
                if isinstance(key, str) and key.isdecimal():
                    yield whole(("item in", item, int(key)))
                return []
            case Instance(cls=cls) | Made(cls=cls):
                return (yield from self._item_of_instance(item, cls, key))
            # Trainer[State](…), of a generic class
            case Class() if is_generic(item.node):
                return [item]
            case Result() if not item.is_instance:
                return [item]
            # to_state_dict(optimizer)["target"]
            case LegacyObject() if isinstance(key, str):
                return (
                    yield from self.engine.library.attribute(self.engine, item, key)
                )
            # optimizer.state[0], of a MultiOptimizer: one state for each part
            case LegacyObject(kind="state"):
                return [item]
        return []

    def _item_of_instance(self, item: Owner, cls: Class, key: Key) -> Answer:
        if (yield from self.has(cls, "__getitem__")):
            place = ("special", item, "__getitem__")
            yield whole(("invoked", place, Arguments(cls.unit, cls.node)))
        # first, second = bag
        if isinstance(key, int) and (yield from self.has(cls, "__iter__")):
            place = ("special", item, "__iter__")
            iterator = ("invoked", place, Arguments(cls.unit, cls.node))
            yield whole(("item of", iterator, key))
        if isinstance(key, int):
            names = [*map(str, (yield ("fields in order", cls)))]
            if key < len(names):
                yield whole(("field", item, names[key]))
        # to_state_dict(state)["optimizer"]
        elif key is not None:
            yield whole(("field", item, key))
        for box in (yield from self.elements_of(item)):
            yield whole(("item in", box, key))
        # class State(NamedTuple)
        if key is None and (yield ("fields in order", cls)):
            yield whole(("any field", cls))
        return []

    def each(self, place: Place) -> Answer:
        """What is in something: its elements, and what an iterator gives."""
        found: list[Object] = []
        for item in (yield place):
            found += yield from self.item_of(item, None)
            if isinstance(item, Instance | Made):
                given = Arguments(item.cls.unit, item.cls.node)
                iterator = ("invoked", ("special", item, "__iter__"), given)
                yield whole(("invoked", ("special", item, "__next__"), given))
                yield whole(("each of", iterator))
        return found

    def turn(self, place: Place) -> Answer:
        """What a loop over something gives: of a dict that is written down, its keys."""
        found: list[Object] = []
        for item in (yield place):
            frame = item.frame if isinstance(item, InFrame) else None
            match plain(item):
                case Container(node=ast.Dict(keys=keys, values=values), role=""):
                    for key, value in zip(keys, values, strict=True):
                        part = ("expression", key or value, frame)
                        # {**others}
                        found += yield part if key else ("turn of", part)
                case Container(node=ast.DictComp(key=key), role=""):
                    found += yield ("expression", key, frame)
                case _:
                    found += yield ("each of", ("itself", item))
        return found

    # Elements of containers

    def element(self, box: Object, key: Key, is_exact: bool = False) -> Answer:
        word = key if isinstance(key, str) else None
        entries = yield from self._entries_at(("entries of", box, word))
        for other, place in entries:
            if other == key or (not is_exact and None in (other, key)):
                yield whole(place)
        return []

    def entries(self, box: Object, word: str | None) -> Answer:
        """The elements of a container: the key and the place of each.

        With a word, those alone that may have this key.
        """
        frame = box.frame if isinstance(box, InFrame) else None
        container = plain(box)
        assert isinstance(container, Container)
        found: list[tuple[Key, Place]] = []
        if isinstance(box, Layout):
            found += box.parts
        else:
            found += yield from self._written(container, frame, word)
        yield ("changes", container, word)
        found += yield from self._entries_at(("stored", box))
        if box is not container:
            for key, place in (yield from self._entries_at(("stored", container))):
                found.append((key, self.engine.within(place, frame)))
        is_shifted = (SHIFTED, None) in found
        # xs.insert(0, x): the indices are others now, and the keys of dicts are not
        return [
            Stored(None if is_shifted and isinstance(key, int) else key, place)
            for key, place in found
            if place is not None and (word is None or key in (word, None))
        ]

    @staticmethod
    def _entries_at(place: Place) -> Entries:
        items = yield place
        return [(one.key, one.place) for one in items if isinstance(one, Stored)]

    def _written(
        self, container: Container, frame: Frame | None, word: str | None
    ) -> Entries:
        """The elements that the expression has which makes a container."""
        found: list[tuple[Key, Place]] = []
        if container.role == GENERATOR:
            for node in self.engine.yielded(container.node):
                if node.value is not None:
                    place = ("expression", node.value, frame)
                    is_from = isinstance(node, ast.YieldFrom)
                    found.append((None, ("each of", place) if is_from else place))
            return found
        if container.role:
            return found
        match container.node:
            case (
                ast.Tuple(elts=elements)
                | ast.List(elts=elements)
                | ast.Set(elts=elements)
            ):
                is_exact = True
                for index, element in enumerate(elements):
                    is_exact = is_exact and not isinstance(element, ast.Starred)
                    place = ("expression", element, frame)
                    if not isinstance(element, ast.Constant):
                        found.append((index if is_exact else None, place))
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    place = ("expression", value, frame)
                    if key is None:  # {**others}
                        found += yield from self.merged(place, word)
                    elif not isinstance(value, ast.Constant):
                        found.append((key_of(key), place))
            case ast.DictComp(value=value):
                found.append((None, ("expression", value, frame)))
            case (
                ast.ListComp(elt=value)
                | ast.SetComp(elt=value)
                | ast.GeneratorExp(elt=value)
            ):
                found.append((None, ("expression", value, frame)))
            case ast.arg():
                found += yield from self._of_any_number(container.node, frame, word)
        return found

    def merged(self, place: Place, word: str | None = None) -> Entries:
        """The elements of the containers at a place, as those of another: indices are lost."""
        found: list[tuple[Key, Place]] = []
        for item in (yield place):
            match item:
                case Container() | Layout() | InFrame(item=Container()):
                    own = yield from self._entries_at(("entries of", item, word))
                    for key, inner in own:
                        found.append((key if isinstance(key, str) else None, inner))
                case Instance() | Made():
                    found.append((None, ("each of", ("itself", item))))
        return found

    def pairs(self, place: Place) -> Entries:
        """The values of the pairs in the containers at a place: `dict(pairs)`."""
        for item in (yield place):
            box = plain(item)
            if isinstance(box, Container) and may_hold_pairs(box):
                return [(None, ("item of", ("each of", place), 1))]
        return []

    def _of_any_number(
        self, argument: ast.arg, frame: Frame | None, word: str | None
    ) -> Entries:
        """What calls put into `*args` or `**kwargs`."""
        function = self.engine.function_with(argument)
        node = function.node
        calls: list[tuple[Arguments, int]] = []
        if frame is not None and frame.arguments is not None:
            calls.append((frame.arguments, 0 if frame.owner is None else 1))
        else:
            for call in (yield ("callers", node)):
                assert isinstance(call, Called)
                calls.append((call.arguments, call.offset))
        positional = [*node.args.posonlyargs, *node.args.args]
        named = {one.arg for one in (*positional, *node.args.kwonlyargs)}
        # def read(*states: TrainState)
        found: list[tuple[Key, Place]] = [(None, ("declared", argument))]
        is_first = argument is node.args.vararg and not positional
        # def wrapper(*args), of a method
        if is_first and frame is not None and frame.owner is not None:
            found.append((0, ("itself", frame.owner)))
        for arguments, offset in calls:
            if argument is node.args.vararg:
                first = len(positional) - offset
                for index, place in enumerate(arguments.positional):
                    if arguments.starred is not None and index >= arguments.starred:
                        found.append((None, ("each of", place)))
                    elif index >= first:
                        found.append((index - first, place))
                continue
            for name, place in arguments.keywords:
                if name not in named:
                    found.append((name, place))
            for place in arguments.unpacked:
                found += yield from self.merged(place, word)
        return found

    # What methods of containers do

    def call_method(self, box: Object, name: str, arguments: Arguments) -> Answer:
        """What `container.name(…)` gives; what it puts in, `changes` finds."""
        container = plain(box)
        assert isinstance(container, Container)
        if name in READING or name == RESULT:
            takes_key = name in ("get", "pop", "setdefault", "__getitem__")
            key = key_argument(arguments) if takes_key else None
            found = [*(yield ("item in", box, key))]
            # states.get(name, default)
            for place in arguments.positional[1:]:
                found += yield place
            return found
        if name in SAME:
            return (yield from self._copied(box, name, arguments))
        elements = ("each of", receiver(arguments, box))
        if name == "values":
            return [Layout(Container(arguments.node, name), ((None, elements),))]
        pair = Layout(Container(arguments.node, "item"), ((1, elements),))
        if name == "popitem":
            return [pair]
        if name == "items":
            pairs = Container(arguments.node, name)
            return [Layout(pairs, ((None, ("itself", pair)),))]
        return []

    def _copied(self, box: Object, name: str, arguments: Arguments) -> Answer:
        """`frozen.copy({"step": 1})`, `xs.union(ys)`: with something more, or the same."""
        parts: list[tuple[Key, Place]] = [*arguments.keywords]
        for place in arguments.all:
            parts += yield from self.merged(place)
        if not parts:
            return [box]
        own = yield from self._entries_at(("entries of", box, None))
        copy = Container(arguments.node, name)
        return [Layout(copy, tuple(dict.fromkeys((*own, *parts))))]

    def change(self, call: ast.Call) -> Answer:
        """Let the containers at the receiver of a method have what it puts in."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in CHANGING:
            # jax.debug.callback(seen.append, state)
            yield ("expression", call, None)
            # subject.on_step(seen.append), which calls it elsewhere
            for given in values_of(call):
                if isinstance(given, ast.Attribute) and given.attr in CHANGING:
                    for other in self.engine.tracing.of_value(given).calls:
                        yield ("site", other)
            return []
        assert isinstance(call.func, ast.Attribute)
        boxes: list[Object] = []
        for item in (yield ("expression", call.func.value, None)):
            boxes += yield from self.elements_of(item)
        if not boxes:
            return []
        unit = self.engine.scopes[call].unit
        arguments = self.engine.arguments(unit, call, None)
        entries: list[tuple[Key, Place]] = []
        if name in STORING:
            entries += ((None, place) for place in arguments.positional)
        elif name in MERGING:
            for place in (*arguments.positional, *arguments.unpacked):
                entries += yield from self.merged(place)
                entries += yield from self.pairs(place)
            entries += arguments.keywords
        elif name == "setdefault":
            key = key_argument(arguments)
            entries += ((key, place) for place in arguments.positional[1:])
        if name in SHIFTING:
            entries.append((SHIFTED, None))
        for box in boxes:
            for key, place in entries:
                self.store(box, key, place)
        return []

    def store(self, box: Object, key: Key, place: Place) -> None:
        # state = dict(step=0), in no call of its function that is told apart: in any of them
        is_any = isinstance(box, Layout) and box.depth == 1
        self.engine.solver.add(
            ("stored", plain(box) if is_any else box), Stored(key, place)
        )

    def store_item(self, store: ItemStore) -> Answer:
        """Let the containers at the owner of an item have what it is set to."""
        target = store.target
        place = self.engine.bound(store.binding, None)
        key = key_of(target.slice)
        if isinstance(target.slice, ast.Slice):  # values[1:3] = others
            place = ("each of", place)
        is_deleted = isinstance(target.ctx, ast.Del)
        for item in (yield ("expression", target.value, None)):
            for box in (yield from self.elements_of(item)):
                if is_deleted or isinstance(target.slice, ast.Slice):
                    self.store(box, SHIFTED, None)
                if not is_deleted:
                    self.store(box, key, place)
            if isinstance(item, Instance | Made):
                unit = item.cls.unit
                given = Arguments(unit, target, (("nothing",), place))
                for callee in (yield ("special", item, "__setitem__")):
                    yield from self.engine.calls.reach(callee, given)
        return []


def receiver(arguments: Arguments, owner: Object) -> Place:
    """The place of the object whose method is called."""
    match arguments.node:
        case ast.Call(func=ast.Attribute(value=value)):
            return ("expression", value, arguments.frame)
    return ("itself", owner)


def _inherited_calls(constructor: FunctionNode) -> list[tuple[ast.Call, ast.expr]]:
    """The calls of other constructors within one, with what these are of: `super()`, `Base`."""
    return [
        (node, node.func.value)
        for node in ast.walk(constructor)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__init__"
    ]


def may_store(change: ast.Call | ItemStore, word: str) -> bool:
    """Whether a change may put something under a key into a dict."""
    match change:
        case ItemStore(target=ast.Subscript(slice=ast.Constant(value=key))):
            return key == word
        case ItemStore(target=ast.Subscript(slice=ast.Slice())):
            return False
        # states.pop(key), values.append(value)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name not in CHANGING or name in MERGING | {"setdefault"}
    return True


def key_argument(arguments: Arguments) -> Key:
    """The literal key that a method of a dict is given: `states.get("optimizer")`."""
    match arguments.node:
        case ast.Call(args=[ast.Constant(value=int() | str() as key), *_]):
            return key
    return None


def is_generic(node: ast.ClassDef) -> bool:
    """Whether a class can be given types: `class Holder(Generic[T])`, or `class Holder[T]`."""
    has_types = any(isinstance(base, ast.Subscript) for base in node.bases)
    return has_types or bool(getattr(node, "type_params", ()))
