"""How objects move through calls, attributes and containers."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from codemods.flow.classes import is_generic
from codemods.flow.containers import (
    MERGING,
    METHODS,
    POOL,
    arguments,
    is_container_class,
    key_argument,
)
from codemods.flow.elements import Elements
from codemods.flow.objects import (
    AnyDerived,
    Class,
    Container,
    Declared,
    Derivative,
    Derived,
    External,
    Function,
    Getter,
    Instance,
    LegacyObject,
    Method,
    Module,
    Namespace,
    Object,
    Opaque,
    Partial,
    Place,
    Record,
    Result,
)
from codemods.flow.scopes import Scope
from codemods.flow.sites import CallSite, Effect, Key
from codemods.flow.solver import Watcher
from codemods.sources.modules import Unit

DEEPEST_WRAPPING = 3
"""`f = partial(f, …)` in a loop must not wrap without end."""

Behaviour = Callable[["Calls", CallSite], object]


class Library:
    """What is known of code outside the project.

    The flow analysis knows nothing else about any package.
    """

    modules: tuple[str, ...] = ()
    """The modules of interest, which an import may mean by a name that is computed."""

    def owns(self, module: str) -> bool:
        """Whether this module is never a file of the project, even if one has the same name."""
        raise NotImplementedError

    def follows(self, name: str) -> bool:
        """Whether it matters that a value is this external object, or came from a call of it."""
        raise NotImplementedError

    def members(self, module: str) -> tuple[str, ...]:
        """The names that a star import of this module is known to bind."""
        raise NotImplementedError

    def function(self, name: str) -> Behaviour | None:
        """What a call of an external function does."""
        raise NotImplementedError

    def effect(self, name: str) -> Effect:
        """What is known of an external function that has no behaviour.

        The name is empty for a function of unknown origin.
        """
        raise NotImplementedError

    def method(self, owner: Object, name: str) -> Behaviour | None:
        """What a call of a method of an object, or of an external function's result, does."""
        raise NotImplementedError

    def attribute(
        self, flow: Calls, obj: LegacyObject, name: str, result: Place
    ) -> None:
        """Let the value of an object's attribute reach `result`."""
        raise NotImplementedError


@dataclass
class HandedBack:
    """The functions that a function is given by some calls and returns to these.

    `waiting` has, for each function that was given but is not known to be returned, the results of
    the calls that gave it.
    """

    back: set[Object] = field(default_factory=set)
    waiting: dict[Object, list[Place]] = field(
        default_factory=lambda: defaultdict(list)
    )


@dataclass(kw_only=True)
class Calls(Elements):
    """The part of the analysis that acts when objects arrive.

    They arrive at a callee, at the receiver of a method, at a value that is subscripted.
    """

    library: Library
    places: dict[ast.expr, Place] = field(default_factory=dict)
    entered: dict[ast.AST, list[tuple[CallSite, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """The calls that reach each function.

    Each comes with the number of parameters, such as `self`, that no argument of the call is for.
    """
    returned: dict[Place, dict[Place, None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """The places of what functions return, by the place that gets it."""
    looked_up: dict[Unit, dict[tuple[str | None, Place], None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """The keys by which variables of each module are read, None for any, and where these go."""
    got: dict[ast.Call, dict[tuple[LegacyObject, str], None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """The objects of which each `attrgetter` or `methodcaller` takes an attribute, and its name."""
    _handed: dict[ast.AST, HandedBack] = field(default_factory=dict)
    _spread: set[tuple[ast.AST, Place]] = field(default_factory=set)
    _special: set[tuple[str, Instance]] = field(default_factory=set)
    """The special methods that have been looked up, by name and instance."""
    _attributes: set[tuple[Class | Instance, str, Place]] = field(default_factory=set)
    """The attributes of classes that are looked up, and where each goes."""
    _begun: set[tuple[Class, str, CallSite]] = field(default_factory=set)
    """What calls of classes do, by name: each once, though every base that shows up asks again."""
    _bound: set[tuple[object, ...]] = field(default_factory=set)
    """The functions, each with the places of arguments that a call binds to it."""

    # Attributes

    def load_attribute(self, owner: Place, name: str, result: Place) -> None:
        self.solver.watch(owner, lambda item: self._load_attribute(item, name, result))

        def ask(item: Object) -> None:
            if isinstance(item, Instance) and name not in ("__dict__", "__class__"):
                self.call_special(item, "__getattr__", result)

        # few programs have such a method, and every attribute that is read would ask for it
        self.once_bound("__getattr__", lambda: self.solver.watch(owner, ask))

    def _load_attribute(self, item: Object, name: str, result: Place) -> None:
        match item:
            case External():
                self._load_from_external(item, name, result)
            case Module():
                self.module_attribute(item, name, result)
            case Instance(cls=cls):
                self._load_from_instance(item, cls, name, result)
            case Class():
                self._class_attribute(item, name, result)
            case Opaque():
                self.solver.connect(self.field(item, name), result)
                self._replace_method(item, name, result)
            case Container():
                self._load_from_container(item, name, result)
            # @functools.singledispatch
            # def update(model): ...
            # @update.register(Model)
            case Function() if name == "register":
                self.solver.add(result, Method(item, name))
            case Function():
                self.solver.connect(("attribute", item.node, name), result)
            case Namespace() if name in METHODS:
                self.solver.add(result, Method(item, name))
            case Derived() | AnyDerived():
                self.solver.add(result, item)
            # optimizer.target, optimizer.apply_gradient
            case LegacyObject() | Result():
                self._load_from_legacy(item, name, result)
            case _:
                pass

    def _load_from_external(self, item: External, name: str, result: Place) -> None:
        if name == "__dict__":  # jax.numpy.__dict__["asarray"]
            self.solver.add(result, item)
            return
        member = f"{item.name}.{name}"
        if self.library.follows(member):
            self.solver.add(result, External(member))

    def _load_from_legacy(
        self, item: LegacyObject | Result, name: str, result: Place
    ) -> None:
        if isinstance(item, LegacyObject):
            self.library.attribute(self, item, name, result)
        if self.library.method(item, name) is not None:
            self.solver.add(result, Method(item, name))

    def _load_from_instance(
        self, item: Instance, cls: Class, name: str, result: Place
    ) -> None:
        if name == "__dict__":
            self.solver.add(result, Namespace(cls))
            return
        if name == "__class__":
            self.solver.add(result, cls)
            return
        self.solver.connect(self.field(cls, name), result)
        self._class_attribute(item, name, result)
        self._replace_method(item, name, result)
        if name in METHODS:
            self.as_container(cls, lambda: self.solver.add(result, Method(item, name)))

    def _load_from_container(self, item: Container, name: str, result: Place) -> None:
        # config.optimizer, where `config` is a namespace, or a dict with attributes
        self.solver.connect(("element", item, name), result)
        if name in METHODS:
            self.solver.add(result, Method(item, name))
        if item.role == POOL:
            self.solver.add(result, item)
            self.load_element(item, None, result)

    def as_container(self, cls: Class, action: Callable[[], object]) -> None:
        """Act if a class derives from a container of Python, now or once that is known."""

        def react() -> None:
            for base in self.ancestry(cls):
                if isinstance(base, Record) or is_container_class(base):
                    action()
                    return

        self.by_ancestry(cls, react)

    def _replace_method(
        self, item: Instance | Opaque, name: str, result: Place
    ) -> None:
        if name in ("replace", "_replace"):
            self.solver.add(result, Method(item, name))

    def module_attribute(self, module: Module, name: str, result: Place) -> None:
        raise NotImplementedError

    def load_from_module(self, module: Module, name: Key, result: Place) -> None:
        """Let a variable of a module reach `result`: any of them, if its name is not known."""
        raise NotImplementedError

    def store_in_module(self, module: Module, name: str | None, source: Place) -> None:
        """Set a variable of a module from outside: any of them, if its name is not known."""
        raise NotImplementedError

    def import_module(self, call: ast.Call, site: CallSite) -> None:
        """Let the modules that may be imported by a name reach the call's result."""
        raise NotImplementedError

    def annotate(self, annotation: ast.expr, scope: Scope, target: Place) -> None:
        """Let an annotation say of which types the values at `target` are."""
        raise NotImplementedError

    def _class_attribute(
        self, owner: Class | Instance, name: str, result: Place
    ) -> None:
        attribute = (owner, name, result)
        if attribute in self._attributes:
            return
        self._attributes.add(attribute)
        cls = owner.cls if isinstance(owner, Instance) else owner
        self.by_ancestry(cls, lambda: self._find_in_class(cls, name, result, owner))

    def _find_in_class(
        self, cls: Class, name: str, result: Place, owner: Class | Instance
    ) -> None:
        nearest = next(self.defining(cls, name), None)
        if nearest is not None:
            place = ("variable", nearest.scope, name)
            self.solver.watch(
                place, lambda item: self._bind_member(item, name, result, owner)
            )

    def _bind_member(
        self, item: Object, name: str, result: Place, owner: Class | Instance
    ) -> None:
        """Let what an attribute gives reach `result`, where the class has `item` under its name."""
        match item:
            case Function():
                self._bind_function(item, name, result, owner)
            # step = functools.partialmethod(update, rate=0.1)
            case Partial(is_method=True, function=Function() as function):
                method = Method(owner, name, function)
                self.solver.add(result, Partial(item.call, method))
            # optimizer = Field(), where `Field` may be the class of a descriptor
            case Instance():
                if isinstance(owner, Instance) and self._has(item, "__get__"):
                    self.call_special(item, "__get__", result, self._owner_place(owner))
                else:
                    self.solver.add(result, item)
            case _:
                self.solver.add(result, item)

    def _bind_function(
        self, function: Function, name: str, result: Place, owner: Class | Instance
    ) -> None:
        decorators = self.decorators(function)
        if "staticmethod" in decorators:
            self.solver.add(result, function)
        elif "classmethod" in decorators:
            cls = owner.cls if isinstance(owner, Instance) else owner
            self.solver.add(result, Method(cls, name, function))
        # Trainer.step: without an instance, `self` is an argument like others
        elif isinstance(owner, Class):
            self.solver.add(result, function)
        elif decorators & {"property", "cached_property"}:
            self._pass_self(function, owner)
            self.solver.connect(("return", function.node), result)
        elif "setter" not in decorators:
            self.solver.add(result, Method(owner, name, function))

    def _has(self, item: Instance, name: str) -> bool:
        return any(self.defining(item.cls, name))

    def call_special(
        self, item: Instance, name: str, result: Place, *arguments: Place
    ) -> None:
        """Let what a special method such as `__enter__` returns reach `result`."""
        method = (name, item)
        if method not in self._special:
            self._special.add(method)
            self._class_attribute(item, name, method)
        cls = item.cls
        site = CallSite(cls.unit, cls.node, arguments, {}, result)
        self.call(method, site)

    def _pass_self(self, function: Function, owner: Object) -> None:
        arguments = function.node.args
        by_position = (*arguments.posonlyargs, *arguments.args)
        # def step(*args): none of its parameters is `self` alone
        if not by_position:
            return
        first = by_position[0]
        self.solver.add(("variable", function.scope, first.arg), owner)

    def store_attribute(self, owner: Place, name: str, source: Place) -> None:
        self.solver.watch(owner, lambda item: self._store_attribute(item, name, source))

    def _store_attribute(self, item: Object, name: str, source: Place) -> None:
        match item:
            case Instance(cls=cls):
                self.solver.connect(source, self.field(cls, name))
                self._call_setter(item, name, source)
            case Opaque():
                self.solver.connect(source, self.field(item, name))
            case Class():
                self.solver.connect(source, ("variable", item.scope, name))
            case Container():
                self.store_element(item, name, source)
            case Module():
                self.store_in_module(item, name, source)
            case Function():
                self.solver.connect(source, ("attribute", item.node, name))
            case _:
                pass

    def _call_setter(self, item: Instance, name: str, source: Place) -> None:
        """Let a property's setter, or the `__set__` of a descriptor, have the value."""

        def find() -> None:
            for ancestor in self.defining(item.cls, name):
                self.solver.watch(("variable", ancestor.scope, name), arrive)

        def arrive(member: Object) -> None:
            # @optimizer.setter
            if isinstance(member, Function) and "setter" in self.decorators(member):
                self._pass_self(member, item)
                result = ("set", member.node)
                site = CallSite(member.unit, member.node, (source,), {}, result)
                self.enter(member, site, 1)
            elif isinstance(member, Instance):
                owner = self._owner_place(item)
                unused = ("set", member, name)
                self.call_special(member, "__set__", unused, owner, source)

        self.by_ancestry(item.cls, find)

    def _owner_place(self, item: Instance) -> Place:
        place = ("instance", item)
        self.solver.add(place, item)
        return place

    # Containers

    def load(self, source: Place, key: Key, result: Place, whole: bool = False) -> None:
        """Let `source[key]` reach `result`; a slice (`whole`) is the container itself."""
        self.solver.watch(source, lambda item: self._load(item, key, result, whole))

    def _load(self, item: Object, key: Key, result: Place, whole: bool) -> None:
        match item:
            case Container() if whole:
                self.scramble(item)
                self.solver.add(result, item)
            case Container():
                self.load_element(item, key, result)
                # to_state_dict(values)["0"]: a list has its indices as keys there.
                if isinstance(key, str) and key.isdecimal():
                    self.load_element(item, int(key), result)
            case Instance():
                self._load_from_item(item, key, result)
            # vars(self)["optimizer"]
            case Namespace(owner=owner):
                self.solver.connect(self._read_place(owner, key), result)
            # sys.modules[__name__].__dict__["optimizer"]
            case Module():
                self.load_from_module(item, key, result)
            case Opaque() if isinstance(key, str):
                self.solver.connect(self.field(item, key), result)
            # Trainer[State](…), of a generic class
            case Class() if is_generic(item.node):
                self.solver.add(result, item)
            case Result() if item.is_instance:
                pass  # an element of it is no such instance
            case Derived() | AnyDerived() | Result():
                self.solver.add(result, item)
            # to_state_dict(optimizer)["target"]
            case LegacyObject() if isinstance(key, str):
                self.library.attribute(self, item, key, result)
            # optimizer.state[0], of a MultiOptimizer: one state for each part
            case LegacyObject(kind="state"):
                self.solver.add(result, item)
            case _:
                pass

    def _load_from_item(self, item: Instance, key: Key, result: Place) -> None:
        cls = item.cls
        self.call_special(item, "__getitem__", result)
        if isinstance(key, int):
            self.by_ancestry(cls, lambda: self._load_field(cls, key, result))
        elif key is not None:
            # to_state_dict(state)["optimizer"]
            self.solver.connect(self.field(cls, key), result)
        # class States(list), of which an element may be in any field
        if not isinstance(key, str):

            def connect() -> None:
                read, _ = self.any_field(cls)
                self.solver.connect(read, result)

            self.as_container(cls, connect)

    def _load_field(self, cls: Class, index: int, result: Place) -> None:
        names = self.fields_in_order(cls)
        if index < len(names):
            self.solver.connect(self.field(cls, names[index]), result)

    def store(self, owner: Place, key: Key, source: Place) -> None:
        """Let `owner[key] = …` have the value at `source`."""
        self.solver.watch(owner, lambda item: self._store(item, key, source))

    def _store(self, item: Object, key: Key, source: Place) -> None:
        match item:
            case Container():
                self.store_element(item, key, source)
            case Instance():
                self._store_in_item(item, key, source)
            # vars(self)[name] = value
            case Namespace(owner=owner):
                self.solver.connect(source, self._write_place(owner, key))
            # globals()[name] = value
            case Module():
                name = key if isinstance(key, str) else None
                self.store_in_module(item, name, source)
            case _:
                pass

    def _store_in_item(self, item: Instance, key: Key, source: Place) -> None:
        cls = item.cls
        unused = ("stored", item)
        self.call_special(item, "__setitem__", unused, ("key of", item), source)
        place = (
            self.field(cls, key)
            if isinstance(key, str)
            else self.elements_of_instances(cls)
        )
        # class States(dict)
        self.as_container(cls, lambda: self.solver.connect(source, place))

    def _read_place(self, owner: Class | Opaque, key: Key) -> Place:
        """Where to read a field: any of them, if its name is not known."""
        if isinstance(key, str):
            return self.field(owner, key)
        read, _ = self.any_field(owner)
        return read

    def _write_place(self, owner: Class | Opaque, key: Key) -> Place:
        """Where to write a field of which the name may not be known."""
        if isinstance(key, str):
            return self.field(owner, key)
        _, written = self.any_field(owner)
        return written

    def iterate(self, source: Place, result: Place) -> None:
        """Let whatever a loop over `source` gives reach `result`."""
        self.load(source, None, result)
        self.solver.watch(source, lambda item: self._iterate_instance(item, result))

    def _iterate_instance(self, item: Object, result: Place) -> None:
        if isinstance(item, Instance):
            iterator = ("iterator", item)
            self.call_special(item, "__iter__", iterator)
            self.call_special(item, "__next__", result)
            self.load(iterator, None, result)

    def spread(self, site: CallSite) -> CallSite:
        """The call `function(first, *rest)` with one argument for the star and all behind it.

        That stands for the containers that are unpacked, and for their elements.
        """
        rest = ("spread", site.node)
        ahead = site.positional[: site.starred]
        for place in site.positional[site.starred :]:
            # The same call may be spread for each of several containers.
            if (site.node, place) not in self._spread:
                self._spread.add((site.node, place))
                self.iterate(place, rest)
                self.solver.connect(place, rest)
        return replace(site, positional=(*ahead, rest), starred=None)

    def concatenate(self, source: Place, node: ast.AST, result: Place) -> None:
        """Let one container of all elements of those at `source` reach `result`, at any index."""
        outcome = Container(node, "concatenation")

        def arrive(item: Object) -> None:
            if isinstance(item, Container):
                self.solver.add(result, outcome)
            elif isinstance(item, Derived | AnyDerived):
                self.solver.add(result, item)

        self.solver.watch(source, arrive)
        self.merge(source, outcome)

    # Calls

    def call(self, callee: Place, site: CallSite) -> None:
        self.solver.watch(callee, lambda item: self.invoke(item, site))

    def invoke(self, callee: Object, site: CallSite) -> None:
        """Let a known callee act on a call."""
        match callee:
            case Function():
                self.enter(callee, site, 0)
                # Those that `functools.singledispatch` may choose instead.
                self.call(("alternatives", callee.node), site)
            # The pool may have functions among its elements.
            case Container(role=role) if role == POOL:
                self.call_container_method(callee, "__call__", site)
            case Getter():
                self._get(callee, site)
            case Method(owner=owner, function=Function() as function):
                self._pass_self(function, owner)
                self.enter(function, site, 1)
            case Method(owner=owner, name=name):
                self._call_method(owner, name, site)
            case Class():
                self.by_ancestry(callee, lambda: self._construct(callee, site))
            case Instance():
                method = ("__call__", site.node, callee)
                self._class_attribute(callee, "__call__", method)
                self.call(method, site)
            case Partial(call=call, function=function):
                self._call_partial(call, function, site)
            case Derivative(function=function, layout=layout):
                self._call_derivative(function, layout, site)
            case External(name=name):
                self._call_external(name, site)
            case Derived() | AnyDerived():
                self.solver.add(site.result, callee)
            case Record(fields=fields):
                self._make_record(fields, site)
            case Declared(annotation=annotation):
                self.solver.connect(("returned", annotation), site.result)
            case _:
                pass

    def _call_external(self, name: str, site: CallSite) -> None:
        behaviour = self.library.function(name)
        if behaviour is not None:
            behaviour(self, site)
        elif self.library.follows(name) or Result(name).is_instance:
            self.solver.add(site.result, Result(name))

    def _get(self, getter: Getter, site: CallSite) -> None:
        """`attrgetter("state.target")(x)`, `itemgetter(0, 1)(x)`, `methodcaller("step", y)(x)`."""
        if not site.positional:
            return
        place = site.positional[0]
        # attrgetter("state.target"): each attribute is one of what the last one gave
        for number, name in enumerate(getter.attributes):
            self.solver.watch(place, partial(self._note_got, getter, name))
            part = ("got", getter, number, site.node)
            self.load_attribute(place, name, part)
            place = part
        self._get_items(getter, site)
        if getter.calls:
            # methodcaller("apply_gradient", grads): its other arguments are the method's
            own = getter.call.args[1:]
            given = tuple(self.places[argument] for argument in own)
            keywords = self._keywords(getter.call)
            self.call(place, replace(site, positional=given, keywords=keywords))
        elif getter.attributes:
            self.solver.connect(place, site.result)

    def _get_items(self, getter: Getter, site: CallSite) -> None:
        source = site.positional[0]
        if len(getter.keys) == 1:
            self.load(source, getter.keys[0], site.result)
        elif getter.keys:
            outcome = Container(site.node, "got")
            self.solver.add(site.result, outcome)
            for index, key in enumerate(getter.keys):
                element = ("got", getter, index, site.node)
                self.load(source, key, element)
                self.store_element(outcome, index, element)

    def _keywords(self, call: ast.Call) -> dict[str, Place]:
        """The places of the arguments that a call gives by name."""
        return {word.arg: self.places[word.value] for word in call.keywords if word.arg}

    def _note_got(self, getter: Getter, name: str, item: Object) -> None:
        if isinstance(item, LegacyObject):
            self.got[getter.call][item, name] = None

    def site_with(self, site: CallSite, box: Place, result: Place) -> CallSite:
        """A call at the same place, of which any argument is any element of what is at `box`."""
        return CallSite(site.unit, site.node, (box,), {}, result, 0, (box,), site.scope)

    def _make_record(self, fields: tuple[str, ...], site: CallSite) -> None:
        outcome = Container(site.node, "record")
        self.solver.add(site.result, outcome)
        for index, name in enumerate(fields):
            place = site.argument(index, name)
            if place is not None:
                self.store_element(outcome, index, place)
                self.store_element(outcome, name, place)

    def enter(self, function: Function, site: CallSite, offset: int) -> None:
        """Bind a call's arguments to the function's parameters, and carry back what it returns.

        The first `offset` of the parameters are bound already.
        """
        self.entered[function.node].append((site, offset))
        # a method comes to a call once for each instance that has it
        if not self._binds(function, site, offset):
            return
        arguments = function.node.args
        by_position = (*arguments.posonlyargs, *arguments.args)
        names = [argument.arg for argument in by_position][offset:]
        self._bind_positional(function, site, names)
        named = {*names, *(argument.arg for argument in arguments.kwonlyargs)}
        extra = Container(arguments.kwarg) if arguments.kwarg else None
        for name, place in site.keywords.items():
            if name in named:
                self.solver.connect(place, ("variable", function.scope, name))
            # def step(state, **options)
            elif extra is not None:
                self.store_element(extra, name, place)
        # function(**unpacked): a second value for a parameter that is bound would be an error.
        count = site.starred if site.starred is not None else len(site.positional)
        bound = {*names[:count], *site.keywords}
        for place in site.unpacked:
            for name in sorted(named - bound):
                self.load(place, name, ("variable", function.scope, name))
            if extra is not None:
                self.merge(place, extra)
        self._leave(function, site)

    def _binds(self, function: Function, site: CallSite, offset: int) -> bool:
        """Whether a call binds other arguments to a function than those before it."""
        words = site.keywords.items()
        call = (site.positional, site.starred, *words, site.unpacked, site.result)
        binding = (function.node, offset, *call)
        if binding in self._bound:
            return False
        self._bound.add(binding)
        return True

    def _bind_positional(
        self, function: Function, site: CallSite, names: list[str]
    ) -> None:
        """Bind positional arguments to parameters of these names, the rest to `*args`."""
        vararg = function.node.args.vararg
        variadic = Container(vararg) if vararg else None
        for index, place in enumerate(site.positional):
            if site.starred is not None and index >= site.starred:
                # function(*rest, last): it is not known which parameter `last` is for.
                for later, name in enumerate(names[site.starred :]):
                    target = ("variable", function.scope, name)
                    if index == site.starred:
                        self.load(place, later, target)
                    else:
                        self.solver.connect(place, target)
                if variadic is not None:
                    self.merge(place, variadic)
            elif index < len(names):
                self.solver.connect(place, ("variable", function.scope, names[index]))
            # def step(state, *batch)
            elif variadic is not None:
                self.store_element(variadic, index - len(names), place)

    def _leave(self, function: Function, site: CallSite) -> None:
        """Carry what a function returns to a call.

        What it was given by another call, it does not return to this one. A wrapper that says by
        `functools.wraps` that it is the wrapped function is that.
        """
        given = (*site.positional, *site.keywords.values())
        returned = ("return", function.node)
        self.returned[site.result][returned] = None
        # decorate(*functions): it is not known which functions are given
        is_unpacked = bool(site.unpacked) or site.starred is not None
        if not given or is_unpacked:
            self.solver.watch(returned, lambda item: self.solver.add(site.result, item))
            return
        handed = self._handed_back(function)

        def arrive(item: Object) -> None:
            # return wrapper
            if isinstance(item, Function) and is_wrapper(item.node):
                self._hand_functions(given, site.result)
            else:
                self.solver.add(site.result, item)

        def give_back(item: Object) -> None:
            if isinstance(item, Function) and not is_wrapper(item.node):
                if item in handed.back:
                    self.solver.add(site.result, item)
                else:
                    handed.waiting[item].append(site.result)

        self.solver.watch(("own", function.node), arrive)
        self._watch_all(given, give_back)

    def _handed_back(self, function: Function) -> HandedBack:
        """Tell the functions that a function is given and returns from all else it returns."""
        if function.node in self._handed:
            return self._handed[function.node]
        handed = self._handed[function.node] = HandedBack()
        arguments = function.node.args
        parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        places = [("variable", function.scope, one.arg) for one in parameters]

        def arrive(item: Object) -> None:
            is_function = isinstance(item, Function) and not is_wrapper(item.node)
            if is_function and any(self.solver.has(place, item) for place in places):
                handed.back.add(item)
                for result in handed.waiting.pop(item, ()):
                    self.solver.add(result, item)
            else:
                self.solver.add(("own", function.node), item)

        self.solver.watch(("return", function.node), arrive)
        return handed

    def _hand_functions(self, places: tuple[Place, ...], result: Place) -> None:
        """Carry the functions at some places to another."""

        def arrive(item: Object) -> None:
            if isinstance(item, Function | Method | Partial | Derivative):
                self.solver.add(result, item)

        self._watch_all(places, arrive)

    def _watch_all(self, places: tuple[Place, ...], watcher: Watcher) -> None:
        for place in places:
            self.solver.watch(place, watcher)

    def _construct(self, cls: Class, site: CallSite) -> None:
        # class Model(flax.linen.Module): what a call of a subclass does, a behaviour may say.
        for ancestor in self.ancestry(cls):
            if not isinstance(ancestor, External):
                continue
            name = f"{ancestor.name}()"
            if self._begins(cls, name, site):
                behaviour = self.library.function(name)
                if behaviour is not None:
                    behaviour(self, site)
        instance = Instance(cls)
        if self._has(instance, "__new__"):
            self._allocate(cls, site)
        else:
            self.solver.add(site.result, instance)
        if self._has(instance, "__init__"):
            self._initialise(instance, site)
            return
        # A dataclass: the arguments are for its fields.
        names = self.fields_in_order(cls)
        known = site.positional[: site.starred]
        for name, place in zip(names, known, strict=False):
            self.solver.connect(place, self.field(cls, name))
        self._keyword_fields(cls, site)

    def _begins(self, cls: Class, name: str, site: CallSite) -> bool:
        """Whether a call of a class does something for the first time."""
        begun = (cls, name, site)
        if begun in self._begun:
            return False
        self._begun.add(begun)
        return True

    def _initialise(self, instance: Instance, site: CallSite) -> None:
        if not self._begins(instance.cls, "__init__", site):
            return
        constructor = ("__init__", instance.cls)
        self._class_attribute(instance, "__init__", constructor)
        initialise = CallSite(
            site.unit,
            site.node,
            site.positional,
            site.keywords,
            ("initialised", site.node),
            site.starred,
            site.unpacked,
        )
        self.call(constructor, initialise)

    def _allocate(self, cls: Class, site: CallSite) -> None:
        """Let a class's own `__new__` say what a call of it gives."""
        if not self._begins(cls, "__new__", site):
            return
        allocator, itself = ("__new__", cls), ("itself", cls)
        self._class_attribute(cls, "__new__", allocator)
        self.solver.add(itself, cls)
        # `cls` comes first, so that a star is one argument further.
        starred = None if site.starred is None else site.starred + 1
        positional = (itself, *site.positional)
        self.call(allocator, replace(site, positional=positional, starred=starred))

    def _keyword_fields(self, owner: Class | Opaque, site: CallSite) -> None:
        for name, place in site.keywords.items():
            self.solver.connect(place, self.field(owner, name))
        # State(**fields)
        if isinstance(owner, Class):
            for place in site.unpacked:
                for name in self.fields_in_order(owner):
                    self.load(place, name, self.field(owner, name))

    def replace_fields(self, item: Object, site: CallSite) -> None:
        """`dataclasses.replace(state, step=1)`, `state.replace(step=1)`: some fields are new."""
        if not isinstance(item, Instance | Opaque):
            return
        owner = item.cls if isinstance(item, Instance) else item
        self._keyword_fields(owner, site)
        self.solver.add(site.result, item)

    def _call_method(self, owner: Object, name: str, site: CallSite) -> None:
        if isinstance(owner, Instance | Opaque):
            defined = isinstance(owner, Instance) and self._has(owner, name)
            # state.replace(optimizer=optimizer), of `flax.struct` or a NamedTuple
            if name in ("replace", "_replace") and not defined:
                self.replace_fields(owner, site)
            elif isinstance(owner, Instance) and not defined:
                self._call_inherited(owner.cls, name, site)
        # vars(self).update(options)
        elif isinstance(owner, Namespace):
            self._call_inherited(owner.owner, name, site)
        # globals().update(options)
        elif isinstance(owner, Module):
            self._call_of_variables(owner, name, site)
        elif isinstance(owner, Function):
            # update.register(Model, update_model): another implementation of the function
            for place in arguments(site):
                self.solver.connect(place, ("alternatives", owner.node))
                self.solver.connect(place, site.result)
            self.solver.add(site.result, Method(owner, name))
        # states.append(optimizer)
        elif isinstance(owner, Container):
            self.call_container_method(owner, name, site)
        # optimizer.apply_gradient(grads)
        elif (behaviour := self.library.method(owner, name)) is not None:
            behaviour(self, site)

    def _call_inherited(self, owner: Class | Opaque, name: str, site: CallSite) -> None:
        """Let a method of containers act on an instance of a class derived from one.

        A `__dict__` has these methods, too.
        """
        read, _ = self.any_field(owner)
        for place in (*site.positional, *site.unpacked):
            self.solver.watch(place, lambda item: self._update_fields(owner, item))
            if name not in MERGING:
                self.solver.connect(place, self.elements_of_instances(owner))
        for word, place in site.keywords.items():
            self.solver.connect(place, self.field(owner, word))
        key = key_argument(site)
        self.solver.connect(self._read_place(owner, key), site.result)
        if key is None and isinstance(owner, Class):
            outcome = Container(owner.node, POOL)
            self.solver.add(site.result, outcome)
            self.store_element(outcome, None, read)

    def _call_of_variables(self, module: Module, name: str, site: CallSite) -> None:
        """A method of `globals()`, or of a module's `__dict__`."""
        # for name, value in globals().items()
        if name in ("copy", "items", "keys", "popitem", "values"):
            variables = Container(site.node, "variables")
            value = ("variables", site.node)
            self.load_from_module(module, None, value)
            self.store_element(variables, None, value)
            self.call_container_method(variables, name, site)
            return
        self.load_from_module(module, key_argument(site), site.result)
        for word, place in site.keywords.items():
            self.store_in_module(module, word, place)
        for place in site.positional:
            self.store_in_module(module, None, place)
            self.iterate(place, ("variables", site.node))
            self.store_in_module(module, None, ("variables", site.node))

    def _update_fields(self, owner: Class | Opaque, item: Object) -> None:
        """Let fields have the elements of a dict, by their keys."""
        if not isinstance(item, Container):
            return
        self.any_field(owner)  # which any field is read from now on

        def connect(key: Key) -> None:
            element = ("element", item, key)
            self.solver.connect(element, self._write_place(owner, key))

        self.by_key(item, connect)

    def _call_partial(self, call: ast.Call, function: Object, site: CallSite) -> None:
        """A call of `partial(function, …)`: the arguments that `call` filled in come first."""
        # partial(train_step, model)
        filled = [node for node in call.args[1:] if not isinstance(node, ast.Starred)]
        earlier = [self.places[node] for node in filled]
        keywords = self._keywords(call) | site.keywords
        starred = None if site.starred is None else site.starred + len(earlier)
        combined = CallSite(
            site.unit,
            site.node,
            (*earlier, *site.positional),
            keywords,
            site.result,
            starred,
            site.unpacked,
            site.scope,
            (call, *site.partials),
        )
        self.invoke(function, combined)

    def _call_derivative(
        self, function: Object, layout: tuple[str, ...], site: CallSite
    ) -> None:
        """A call of `jax.value_and_grad(function)`: a tuple laid out as `layout` says."""
        value = ("value of", site.node, function)
        self.invoke(function, replace(site, result=value))
        outcome = Container(site.node, "derivative")
        self.solver.add(site.result, outcome)
        for index, word in enumerate(layout):
            if word == "value":
                self.store_element(outcome, index, value)
            elif word == "auxiliary":
                # With `has_aux`, the function gives `(value, auxiliary)`.
                auxiliary = ("auxiliary of", site.node, function)
                self.load(value, 1, auxiliary)
                self.store_element(outcome, index, auxiliary)


def wrapping(item: Object) -> int:
    """How often a callable is wrapped in partial applications and derivatives."""
    if not isinstance(item, Partial | Derivative):
        return 0
    return 1 + wrapping(item.function)


def is_wrapper(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a function takes any arguments, and stands for another by `functools.wraps`.

    ```
    @functools.wraps(function)
    def wrapper(*args, **kwargs): ...
    ```
    """
    if isinstance(node, ast.Lambda) or node.args.vararg is None:
        return False
    if node.args.args or node.args.posonlyargs:
        return False
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            name = ast.unparse(decorator.func)
            if name.rpartition(".")[2] == "wraps":
                return True
    return False
