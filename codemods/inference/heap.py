"""What attributes, fields and elements of objects are."""

from __future__ import annotations

import ast
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.annotations import parts_of
from codemods.inference.containers import (
    CHANGING,
    GENERATOR,
    MERGING,
    METHODS,
    POOL,
    READING,
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
    Namespace,
    Object,
    Opaque,
    Partial,
    Place,
    Record,
    Result,
    Stored,
    method,
    plain,
)
from codemods.inference.reading import AttributeStore, ItemStore, key_of

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]
Entries: TypeAlias = Generator[Place, tuple[Object, ...], list[tuple[Key, Place]]]
Owner: TypeAlias = "Instance | Made"

REPLACING = ("replace", "_replace")


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
            case Module() if name == "__dict__":
                return [item]
            case Module():
                return (yield from self._of_module(item, name))
            case Instance() | Made():
                return (yield from self._of_instance(item, name))
            case Opaque():
                found = [*(yield ("field", item, name))]
                return [*found, method(item, name)] if name in REPLACING else found
            case Class():
                found = yield from self.member_of(item, name, item)
                for cls in (yield ("ancestry", item)):
                    if isinstance(cls, Class):
                        found += yield ("attribute", cls.node, name)
                return found
            case InFrame(item=Container()) | Layout() | Container():
                return (yield from self._of_container(item, name))
            # @update.register(Model), of a `functools.singledispatch`
            case Function() | InFrame(item=Function()) if name == "register":
                return [method(item, name)]
            case Function(node=node) | InFrame(item=Function(node=node)):
                return [*(yield ("attribute", node, name))]
            case Namespace() if name in METHODS:
                return [method(item, name)]
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

    def _of_module(self, item: Module, name: str) -> Answer:
        found = yield from self.engine.names.member(item, name)
        is_bound = item.unit is not None and name in self.engine.module(item.unit).names
        if name in METHODS and item.unit is not None and not is_bound:
            # `globals().update(…)`: the module stands for the dict of its variables
            found.append(method(item, name))
        return found

    def _of_container(self, item: Object, name: str) -> Answer:
        box = plain(item)
        found: list[Object] = []
        if name in METHODS:
            found.append(method(item, name))
        # config.optimizer, where `config` is a namespace, or a dict with attributes
        else:
            found += yield ("element in", item, name)
            found += yield ("attribute", box.node, name)  # type: ignore[attr-defined]
        if isinstance(box, Container) and box.role == POOL:
            found.append(item)
            found += yield from self.element(item, None)
        return found

    def _of_instance(self, item: Owner, name: str) -> Answer:
        cls = item.cls
        if name == "__dict__":
            return [Namespace(cls)]
        if name == "__class__":
            return [cls]
        found = [*(yield ("field", item, name))]
        found += yield from self.member_of(cls, name, item)
        if name in REPLACING:
            found.append(method(item, name))
        if name in METHODS and (yield from self.is_container(cls)):
            found.append(method(item, name))
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

    def is_container(self, cls: Class) -> Generator[Place, tuple[Object, ...], bool]:
        """Whether a class derives from a container of Python."""
        for base in (yield ("ancestry", cls)):
            if isinstance(base, Record):
                return True
            if isinstance(base, External) and is_container_class(base):
                return True
        return False

    def member_of(self, cls: Class, name: str, owner: Class | Owner) -> Answer:
        """What an attribute gives that the class, or the nearest of its bases, binds."""
        nearest = next(iter((yield from self.defining(cls, name))), None)
        if nearest is None:
            return []
        assert isinstance(nearest, Class)
        found: list[Object] = []
        for item in (yield ("variable", nearest.scope, name)):
            found += yield from self._bind(item, name, owner)
        return found

    def _bind(self, item: Object, name: str, owner: Class | Owner) -> Answer:
        match item:
            case Function():
                return (yield from self._bind_function(item, name, owner))
            # step = functools.partialmethod(update, rate=0.1)
            case Partial(is_method=True, function=Function() as function):
                return [Partial(item.call, method(owner, name, function))]
            # optimizer = Field(), where `Field` may be the class of a descriptor
            case Instance(cls=cls) | Made(cls=cls) if not isinstance(owner, Class):
                if not (yield from self.has(cls, "__get__")):
                    return [item]
                given = Arguments(cls.unit, cls.node, (("itself", owner),))
                return [*(yield ("invoked", ("special", item, "__get__"), given))]
        return [item]

    def _bind_function(
        self, function: Function, name: str, owner: Class | Owner
    ) -> Answer:
        decorators = self.engine.decorators(function)
        if "staticmethod" in decorators:
            return [function]
        if "classmethod" in decorators:
            cls = owner if isinstance(owner, Class) else owner.cls
            return [Method(cls, name, function)]
        # Trainer.step: without an instance, `self` is an argument like others
        if isinstance(owner, Class):
            return [function]
        if decorators & {"property", "cached_property"}:
            frame = self.engine.frame(function, None, None, owner)
            return [*(yield self.engine.returned(function.node, frame))]
        return [] if "setter" in decorators else [method(owner, name, function)]

    def fields_in_order(
        self, cls: Class
    ) -> Generator[Place, tuple[Object, ...], list[str]]:
        """The annotated fields of a dataclass or NamedTuple, inherited ones first."""
        names: dict[str, None] = {}
        for ancestor in reversed((yield ("ancestry", cls))):
            # class State(namedtuple("State", "params step"))
            if isinstance(ancestor, Record):
                names.update(dict.fromkeys(ancestor.fields))
            if isinstance(ancestor, Class):
                for statement in ancestor.node.body:
                    match statement:
                        # rate: float = 0.1
                        case ast.AnnAssign(target=ast.Name(id=name)):
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
                found += yield ("some field", cls)
        if isinstance(owner, Made):
            found += yield from self._given_to(owner, name)
            if owner.source is not None:
                return found
        elif name in self.engine.index.keywords or name in (
            yield from self.fields_in_order(owner.cls)
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
        arguments = made.arguments
        named = arguments.keyword(name)
        if made.source is not None:
            if named is not None:
                return [*(yield named)]
            found: list[Object] = []
            for place in arguments.unpacked:
                found += yield ("item of", place, name)
            if not is_any:
                found += yield ("field of", made.source, made.cls, name)
            return found
        if (yield from self.has(made.cls, "__init__")):
            return []
        # a dataclass: the arguments are for its fields
        names = yield from self.fields_in_order(made.cls)
        if name in names:
            index = names.index(name)
            place = arguments.argument(index, name)
            if place is not None:
                return [*(yield place)]
            found = []
            if arguments.starred is not None and index >= arguments.starred:
                first = arguments.positional[arguments.starred]
                found += yield ("item of", first, index - arguments.starred)
            for place in arguments.unpacked:
                found += yield ("item of", place, name)
            return found
        return [] if named is None else [*(yield named)]

    def field_of(self, place: Place, cls: Class, name: str) -> Answer:
        found: list[Object] = []
        for item in (yield place):
            if isinstance(item, Instance | Made):
                found += yield ("field", item, name)
        return found

    def _stored_in(
        self, owner: Owner, name: str, ancestry: tuple[Object, ...]
    ) -> Answer:
        found: list[Object] = []
        for store in self.engine.index.stores.get(name, ()):
            method = self.engine.method_storing(store)
            if method is None:
                found += yield from self._stored_outside(owner, store, ancestry)
            elif self.engine.class_of_method(method) in ancestry:
                frame = self._frame_of(owner, method, store)
                found += yield self.engine.bound(store.binding, frame)
        return found

    def _frame_of(
        self, owner: Owner, method: Function, store: AttributeStore
    ) -> Frame | None:
        """The frame in which a method sets a field of `self`."""
        if not isinstance(owner, Made) or store.function is not method.node:
            return None
        is_constructor = (
            not isinstance(method.node, ast.Lambda) and method.node.name == "__init__"
        )
        arguments = owner.arguments if is_constructor else None
        return self.engine.frame(method, arguments, None, owner)

    def _stored_in_unknown(self, owner: Opaque, name: str) -> Answer:
        """What `state.best = …` sets, of a state of unknown origin."""
        found: list[Object] = []
        for store in self.engine.index.stores.get(name, ()):
            if owner in (yield ("expression", store.target.value, None)):
                found += yield self.engine.bound(store.binding, None)
        return found

    def _stored_outside(
        self, owner: Owner, store: AttributeStore, ancestry: tuple[Object, ...]
    ) -> Answer:
        """What `trainer.optimizer = …` or `Trainer.optimizer = …` sets."""
        for item in (yield ("expression", store.target.value, None)):
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

    def any_field(self, cls: Class) -> Answer:
        """What any field of any instance may be."""
        found: list[Object] = [*(yield ("some field", cls))]
        names: dict[str, None] = {}
        for ancestor in (yield ("ancestry", cls)):
            if isinstance(ancestor, Class):
                names.update(dict.fromkeys(self.engine.fields_named(ancestor)))
        for name in names:
            found += yield ("field", Instance(cls), name)
        return found

    # Items

    def item(self, place: Place, key: Key) -> Answer:
        """What `x[key]` may be, or any element of it."""
        found: list[Object] = []
        for one in (yield place):
            found += yield from self.item_of(one, key)
        return found

    def item_of(self, item: Object, key: Key) -> Answer:
        match item:
            case Container() | Layout() | InFrame(item=Container()):
                found = [*(yield ("item in", item, key))]
                # to_state_dict(values)["0"]: a list has its indices as keys there
                if isinstance(key, str) and key.isdecimal():
                    found += yield ("item in", item, int(key))
                return found
            case Instance(cls=cls) | Made(cls=cls):
                return (yield from self._item_of_instance(item, cls, key))
            # vars(self)["optimizer"]
            case Namespace(owner=Class() as owner):
                if isinstance(key, str):
                    return [*(yield ("field", Instance(owner), key))]
                return [*(yield ("any field", owner))]
            # sys.modules[__name__].__dict__["optimizer"]
            case Module():
                if isinstance(key, str):
                    return (yield from self.engine.names.member(item, key))
                return (yield from self.engine.names.any_member(item))
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
        found: list[Object] = []
        if (yield from self.has(cls, "__getitem__")):
            place = ("special", item, "__getitem__")
            found += yield ("invoked", place, Arguments(cls.unit, cls.node))
        if isinstance(key, int):
            names = yield from self.fields_in_order(cls)
            if key < len(names):
                found += yield ("field", item, names[key])
        # to_state_dict(state)["optimizer"]
        elif key is not None:
            found += yield ("field", item, key)
        # class States(list), of which an element may be in any field
        if not isinstance(key, str) and (yield from self.is_container(cls)):
            found += yield ("any field", cls)
        return found

    def each(self, place: Place) -> Answer:
        """What a loop over something gives."""
        found: list[Object] = []
        for item in (yield place):
            found += yield from self.item_of(item, None)
            if isinstance(item, Instance | Made):
                given = Arguments(item.cls.unit, item.cls.node)
                iterator = ("invoked", ("special", item, "__iter__"), given)
                found += yield ("invoked", ("special", item, "__next__"), given)
                found += yield ("each of", iterator)
        return found

    # Elements of containers

    def element(self, box: Object, key: Key, is_exact: bool = False) -> Answer:
        found: list[Object] = []
        word = key if isinstance(key, str) else None
        for entry in (yield ("entries of", box, word)):
            assert isinstance(entry, Stored)
            if entry.key == key or (not is_exact and None in (entry.key, key)):
                found += yield entry.place
        if key is None:
            found += yield ("keys of", box)
        return found

    def entries(self, box: Object, word: str | None) -> Answer:
        """The elements of a container: the key and the place of each.

        With a word, those that may have another key need not be among them.
        """
        frame = box.frame if isinstance(box, InFrame) else None
        container = plain(box)
        assert isinstance(container, Container)
        found: list[tuple[Key, Place]] = []
        if isinstance(box, Layout):
            found += box.parts
        else:
            found += yield from self._written(container, frame)
        yield ("changes", container, word)
        stored = [*(yield ("stored", box))]
        is_shifted = False
        if box is not container:
            for one in (yield ("stored", container)):
                assert isinstance(one, Stored)
                stored.append(Stored(one.key, self.engine.within(one.place, frame)))
        for one in stored:
            assert isinstance(one, Stored)
            if one.key == SHIFTED and one.place is None:
                is_shifted = True
            else:
                found.append((one.key, one.place))
        # xs.insert(0, x): the indices are others now, and the keys of dicts are not
        return [
            Stored(None if is_shifted and isinstance(key, int) else key, place)
            for key, place in found
        ]

    def _written(self, container: Container, frame: Frame | None) -> Entries:
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
                        found += yield from self.merged(place)
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
                found += yield from self._of_any_number(container.node, frame)
        return found

    def merged(self, place: Place) -> Entries:
        """The elements of the containers at a place, as those of another: indices are lost."""
        found: list[tuple[Key, Place]] = []
        for item in (yield place):
            match item:
                case Container() | Layout() | InFrame(item=Container()):
                    for one in (yield ("entries of", item, None)):
                        assert isinstance(one, Stored)
                        key = one.key if isinstance(one.key, str) else None
                        found.append((key, one.place))
                case Namespace(owner=Class() as owner):
                    found.append((None, ("any field", owner)))
                case Instance(cls=cls) | Made(cls=cls):
                    if (yield from self.is_container(cls)):
                        found.append((None, ("any field", cls)))
        return found

    def pairs(self, place: Place) -> Entries:
        """The values of the pairs in the containers at a place: `dict(pairs)`."""
        for item in (yield place):
            box = plain(item)
            if isinstance(box, Container) and may_hold_pairs(box):
                return [(None, ("item of", ("elements at", place), 1))]
        return []

    def elements_at(self, place: Place) -> Answer:
        """The elements of the containers at a place; of `globals()`, all variables."""
        found: list[Object] = []
        for item in (yield place):
            if isinstance(plain(item), Container):
                found += yield ("item in", item, None)
            elif isinstance(item, Module):
                found += yield ("variables of", item)
        return found

    def keys_at(self, place: Place) -> Answer:
        """The keys of the containers at a place."""
        found: list[Object] = []
        for item in (yield place):
            if isinstance(plain(item), Container):
                found += yield ("keys of", item)
        return found

    def _of_any_number(self, argument: ast.arg, frame: Frame | None) -> Entries:
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
        for arguments, offset in calls:
            if argument is node.args.vararg:
                first = len(positional) - offset
                for index, place in enumerate(arguments.positional):
                    if arguments.starred is not None and index >= arguments.starred:
                        found.append((None, ("each of", place)))
                    elif index >= first:
                        found.append((index - first, place))
                continue
            for word, place in arguments.keywords:
                if word not in named:
                    found.append((word, place))
            for place in arguments.unpacked:
                found += yield from self.merged(place)
        return found

    def keys(self, box: Object) -> Answer:
        """What the keys of a dict may be, besides literals."""
        frame = box.frame if isinstance(box, InFrame) else None
        container = plain(box)
        assert isinstance(container, Container)
        found: list[Object] = []
        yield ("changes", container, None)
        for one in (yield ("stored keys", container)):
            assert isinstance(one, Stored)
            found += yield one.place
        if container.role:
            return found
        match container.node:
            case ast.Dict(keys=keys):
                for key in keys:
                    if key is not None and not isinstance(key, ast.Constant):
                        found += yield ("expression", key, frame)
            case ast.DictComp(key=key):
                found += yield ("expression", key, frame)
        return found

    # What methods of containers do

    def call_method(self, box: Object, name: str, arguments: Arguments) -> Answer:
        """What `container.name(…)` gives; what it puts in, `changes` finds."""
        container = plain(box)
        assert isinstance(container, Container)
        if name == "setdefault":
            key = key_argument(arguments)
            found = yield from self.element(box, key)
            for place in arguments.positional[1:]:
                found += yield place
            return found
        if name in READING:
            takes_key = name in ("get", "pop", "__getitem__")
            key = key_argument(arguments) if takes_key else None
            found = yield from self.element(box, key)
            # states.get(name, default)
            if name != "send":
                for place in arguments.positional[1:]:
                    found += yield place
            return found
        if name in SAME:
            return (yield from self._copied(box, name, arguments))
        source = receiver(arguments, box)
        keys, elements = ("keys at", source), ("elements at", source)
        pair = Layout(Container(arguments.node, "item"), ((0, keys), (1, elements)))
        if name == "popitem":
            return [pair]
        if name == "items":
            pairs = Container(arguments.node, "items")
            return [Layout(pairs, ((None, ("itself", pair)),))]
        if name in ("keys", "values"):
            place = keys if name == "keys" else elements
            return [Layout(Container(arguments.node, name), ((None, place),))]
        if container.role == POOL:
            found = yield from self.element(box, None)
            return [box, *found]
        return []

    def _copied(self, box: Object, name: str, arguments: Arguments) -> Answer:
        """`frozen.copy({"step": 1})`, `xs.union(ys)`: with something more, or the same."""
        parts: list[tuple[Key, Place]] = [*arguments.keywords]
        for place in arguments.all:
            parts += yield from self.merged(place)
        if not parts:
            return [box]
        own: list[tuple[Key, Place]] = []
        for one in (yield ("entries of", box, None)):
            assert isinstance(one, Stored)
            own.append((one.key, one.place))
        copy = Container(arguments.node, name)
        return [Layout(copy, tuple(dict.fromkeys((*own, *parts))))]

    def change(self, call: ast.Call) -> Answer:
        """Let the containers at the receiver of a method have what it puts in."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in CHANGING | SHIFTING | {"send"}:
            # jax.debug.callback(seen.append, state)
            yield ("expression", call, None)
            return []
        assert isinstance(call.func, ast.Attribute)
        items = yield ("expression", call.func.value, None)
        boxes = [item for item in items if isinstance(plain(item), Container)]
        if not boxes:
            # globals().update(fields)
            if any(isinstance(item, Module) for item in items):
                yield ("expression", call, None)
            for item in items:
                if isinstance(item, Instance | Made):
                    yield from self._change_instance(item.cls, name, call)
                # super().__setitem__(key, value)
                elif isinstance(item, Namespace) and isinstance(item.owner, Class):
                    yield from self._change_fields(item.owner, call)
            return []
        scope = self.engine.reading.scopes[call].unit
        arguments = self.engine.arguments(scope, call, None)
        entries: list[tuple[Key, Place]] = []
        if name in STORING:
            spread = range(len(arguments.positional))
            for index in spread:
                place = arguments.positional[index]
                is_starred = (
                    arguments.starred is not None and index >= arguments.starred
                )
                entries.append((None, ("each of", place) if is_starred else place))
        elif name in MERGING:
            for place in (*arguments.positional, *arguments.unpacked):
                entries += yield from self.merged(place)
                entries += yield from self.pairs(place)
            entries += arguments.keywords
        elif name == "setdefault":
            key = key_argument(arguments)
            entries += ((key, place) for place in arguments.positional[1:])
        elif name == "send":
            entries += (("sent", place) for place in arguments.positional)
        if name in SHIFTING:
            entries.append((SHIFTED, None))
        for box in boxes:
            for key, place in entries:
                self.engine.solver.add(("stored", box), Stored(key, place))
        return []

    def store_item(self, store: ItemStore) -> Answer:
        """Let the containers at the owner of an item have what it is set to."""
        target = store.target
        # del values[0]
        if isinstance(target.ctx, ast.Del):
            for item in (yield ("expression", target.value, None)):
                if isinstance(plain(item), Container):
                    self.engine.solver.add(("stored", item), Stored(SHIFTED, None))
            return []
        place = self.engine.bound(store.binding, None)
        key = key_of(target.slice)
        if isinstance(target.slice, ast.Slice):  # values[1:3] = others
            place = ("each of", place)
        for item in (yield ("expression", target.value, None)):
            if isinstance(plain(item), Container):
                self.engine.solver.add(("stored", item), Stored(key, place))
                if isinstance(target.slice, ast.Slice):
                    self.engine.solver.add(("stored", item), Stored(SHIFTED, None))
                if not isinstance(target.slice, ast.Constant | ast.Slice):
                    place_of_key = Stored(None, ("expression", target.slice, None))
                    self.engine.solver.add(("stored keys", plain(item)), place_of_key)
            elif isinstance(item, Instance | Made):
                unit = item.cls.unit
                given = Arguments(unit, target, (("nothing",), place))
                if (yield from self.has(item.cls, "__setitem__")):
                    special = ("special", item, "__setitem__")
                    for callee in (yield special):
                        yield from self.engine.calls.reach(callee, given)
                elif (yield from self.is_container(item.cls)):
                    word: Place = ("some field", item.cls)
                    if isinstance(key, str):
                        word = ("seeded field", item.cls, key)
                    self.engine.solver.add(word, *(yield place))
            # vars(self)[name] = value
            elif isinstance(item, Namespace) and isinstance(item.owner, Class):
                word = ("some field", item.owner)
                if isinstance(key, str):
                    word = ("seeded field", item.owner, key)
                self.engine.solver.add(word, *(yield place))
            # globals()[name] = value
            elif isinstance(item, Module) and item.unit is not None:
                scope = self.engine.module(item.unit)
                name = key if isinstance(key, str) else None
                self.engine.set_from_outside(scope, name, (yield place))
        return []

    def _change_instance(self, cls: Class, name: str, call: ast.Call) -> Answer:
        """A method that a class inherits from a container of Python."""
        if not (yield from self.is_container(cls)) or (yield from self.has(cls, name)):
            return []
        return (yield from self._change_fields(cls, call))

    def _change_fields(self, cls: Class, call: ast.Call) -> Answer:
        arguments = self.engine.arguments(
            self.engine.reading.scopes[call].unit, call, None
        )
        for place in arguments.all:
            found = yield place
            self.engine.solver.add(("some field", cls), *found)
            found = yield ("each of", place)
            self.engine.solver.add(("some field", cls), *found)
        return []


def receiver(arguments: Arguments, owner: Object) -> Place:
    """The place of the object whose method is called."""
    match arguments.node:
        case ast.Call(func=ast.Attribute(value=value)):
            return ("expression", value, arguments.frame)
    return ("itself", owner)


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
