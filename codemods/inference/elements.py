"""What is in containers: items, elements, what methods put in and give back."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.inference.binding import arguments_in, values_of
from codemods.inference.containers import (
    CHANGING,
    GENERATOR,
    MERGING,
    READING,
    RESULT,
    SAME,
    SHIFTING,
    STORING,
    is_container_class,
    may_hold_pairs,
)
from codemods.inference.heap import Answer, Entries, Owner
from codemods.inference.objects import (
    SHIFTED,
    Arguments,
    Called,
    Class,
    Container,
    Frame,
    InFrame,
    Instance,
    Key,
    Layout,
    LegacyObject,
    Made,
    Object,
    Place,
    Result,
    Stored,
    plain,
)
from codemods.inference.reading import (
    ItemStore,
    key_of,
)
from codemods.inference.solver import whole

if TYPE_CHECKING:
    from codemods.inference.engine import Inference


class Elements:
    """Equations of what is in containers, and of what their methods do."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine
        self.heap = engine.heap

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
        if (yield from self.heap.has(cls, "__getitem__")):
            place = ("special", item, "__getitem__")
            yield whole(("invoked", place, Arguments(cls.unit, cls.node)))
        # first, second = bag
        if isinstance(key, int) and (yield from self.heap.has(cls, "__iter__")):
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
        stored = yield from self._entries_at(("stored", box))
        if box is not container:
            for key, place in (yield from self._entries_at(("stored", container))):
                stored.append((key, self.engine.within(place, frame)))
        for key, place in stored:
            match place:
                case ("contents of", others):
                    found += yield from self.merged(others, word)
                    found += yield from self.pairs(others)
                case _:
                    found.append((key, place))
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
        arguments = arguments_in(unit, call, None)
        entries: list[tuple[Key, Place]] = []
        if name in STORING:
            entries += ((None, place) for place in arguments.positional)
        elif name in MERGING:
            others = (*arguments.positional, *arguments.unpacked)
            entries += ((None, ("contents of", place)) for place in others)
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
