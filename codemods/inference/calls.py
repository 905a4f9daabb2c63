"""What calls give, and which calls reach a function."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.behaviours import apply
from codemods.inference.binding import arguments_in
from codemods.inference.containers import GENERATOR, STORING
from codemods.inference.library import APPLYING
from codemods.inference.objects import (
    Arguments,
    Called,
    Class,
    Container,
    Declared,
    Derivative,
    External,
    Function,
    Getter,
    InFrame,
    Instance,
    Key,
    Layout,
    LegacyObject,
    Made,
    Method,
    Object,
    Opaque,
    Partial,
    Place,
    Record,
    Result,
    plain,
)
from codemods.inference.reading import FunctionNode, last_name
from codemods.inference.solver import whole
from codemods.vocabulary import ARRAY, MAP_TREES, NUMBERS

if TYPE_CHECKING:
    from codemods.inference.engine import Inference
    from codemods.inference.objects import Frame

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]

CALLABLES = Function | Method | Partial | Derivative


class Calls:
    """Equations of calls."""

    def __init__(self, engine: Inference) -> None:
        self.engine = engine
        self.reached: dict[ast.AST, dict[FunctionNode, None]] = defaultdict(dict)
        """The functions that each call, decorator or item that is set is known to reach."""

    def invoked(self, callee: Place, arguments: Arguments) -> Answer:
        found: list[Object] = []
        for item in (yield callee):
            found += yield from self.invoke(item, arguments)
        return found

    def invoke(self, callee: Object, arguments: Arguments) -> Answer:
        """What a call of something known gives."""
        match callee:
            case Function():
                return (yield from self._enter(callee, None, arguments, None))
            case InFrame(item=Function() as function, frame=frame):
                return (yield from self._enter(function, frame, arguments, None))
            case Method(owner=owner, function=Function() as function):
                return (yield from self._enter(function, None, arguments, owner))
            case InFrame(
                item=Method(owner=owner, function=Function() as function), frame=frame
            ):
                return (yield from self._enter(function, frame, arguments, owner))
            case Method():
                return (yield from self._call_method(callee, arguments))
            case Class():
                return (yield from self._construct(callee, arguments))
            case Instance() | Made():
                place = ("special", callee, "__call__")
                return [*(yield ("invoked", place, arguments))]
            case Partial():
                return (yield from self._call_partial(callee, None, arguments))
            case InFrame(item=Partial() as partial, frame=frame):
                return (yield from self._call_partial(partial, frame, arguments))
            case Derivative():
                return self._call_derivative(callee, arguments)
            case Getter():
                return (yield from self._get(callee, None, arguments))
            case InFrame(item=Getter() as getter, frame=frame):
                return (yield from self._get(getter, frame, arguments))
            case External(name=name):
                return (yield from self._call_external(name, arguments))
            case Record(fields=fields):
                return [self._record(fields, arguments)]
            case Declared(annotation=annotation):
                return [*(yield ("returned", annotation))]
        return []

    def reach(self, callee: Object, arguments: Arguments) -> Answer:
        """Let the functions and classes that a call reaches know of it."""
        match callee:
            case Function(node=node) | InFrame(item=Function(node=node)):
                self._note(node, arguments, 0)
            case (
                Method(owner=owner, function=Function(node=node))
                | InFrame(item=Method(owner=owner, function=Function(node=node)))
            ):
                self._note(node, arguments, 1)
                # Derived.create(), of a class method of the base
                if isinstance(owner, Class):
                    self.engine.solver.add(("owners", node), owner)
            case Partial(call=call, function=function):
                yield from self.reach(function, self.filled(call, None, arguments))
            case InFrame(item=Partial(call=call, function=function), frame=frame):
                given = self.filled(call, frame, arguments)
                yield from self.reach(function, given)
            case Derivative(function=function):
                yield from self.reach(function, arguments)
            case Class():
                yield from self._construct(callee, arguments)
            case Instance() | Made():
                for item in (yield ("special", callee, "__call__")):
                    yield from self.reach(item, arguments)
        return []

    def has_effect(self, callee: Object, call: ast.Call) -> bool:
        """Whether a call has to be looked at though nobody asks what it gives."""
        match callee:
            # jax.tree_util.tree_map(step, states, is_leaf=is_state)
            case External(name=name) if name in MAP_TREES:
                return any(one.arg == "is_leaf" for one in call.keywords)
            case External(name=name):
                return name in APPLYING
            # optimizer_def.create(params), state.replace(optimizer=optimizer), pool.submit(step)
            case Method(
                owner=LegacyObject() | Instance() | Made() | Result(), function=None
            ):
                return True
            # agents.sort(key=score), and seen.append by another name
            case Method(name=name, function=None):
                by_name = last_name(call.func) == name
                return name == "sort" or (name in STORING and not by_name)
            case Getter():
                return True
        return False

    def _note(self, node: FunctionNode, arguments: Arguments, offset: int) -> None:
        if arguments.depth == 0:
            call = Called(arguments, offset)
            self.reached[arguments.node][node] = None
            self.engine.solver.add(("callers", node), call)

    # Functions of the project

    def _enter(
        self,
        function: Function,
        around: Frame | None,
        arguments: Arguments,
        owner: Object | None,
    ) -> Answer:
        self._note(function.node, arguments, 0 if owner is None else 1)
        frame = self.engine.frame(function, arguments, around, owner)
        found: list[Object] = []
        returned = yield self.engine.returned(function.node, frame)
        for item in returned:
            inner = plain(item)
            # a wrapper that says by `functools.wraps` what it is
            if isinstance(inner, Function) and is_wrapper(inner.node):
                for place in arguments.all:
                    found += (one for one in (yield place) if is_callable(one))
            else:
                found.append(item)
        return found

    def returned(self, node: FunctionNode, frame: Frame | None = None) -> Answer:
        """What a function returns."""
        found: list[Object] = [*(yield ("seeded return", node))]
        if self.engine.yielded(node):
            box = Container(node, GENERATOR)
            return [*found, box if frame is None else InFrame(box, frame)]
        for value in self.engine.values_returned(node):
            yield whole(("expression", value, frame))
        return found

    # Classes

    def _construct(self, cls: Class, arguments: Arguments) -> Answer:
        found: list[Object] = []
        ancestry = yield ("ancestry", cls)
        # class Model(flax.linen.Module): what a call of a subclass does, a model may say
        for ancestor in ancestry:
            if isinstance(ancestor, External):
                behaviour = self.engine.library.function(f"{ancestor.name}()")
                if behaviour is not None:
                    found += yield from behaviour(self.engine, arguments)
        made = Made(cls, arguments)
        if arguments.depth == 0:
            for ancestor in ancestry:
                if isinstance(ancestor, Class):
                    self.engine.solver.add(("instances", ancestor), made)
        found.append(made)
        for item in (yield from self.engine.heap.member_of(cls, "__init__", made)):
            yield from self.reach(item, arguments)
        return found

    # What wraps functions

    def filled(
        self, call: ast.Call, frame: Frame | None, arguments: Arguments
    ) -> Arguments:
        """The arguments of a call of `partial(function, …)`: those that `call` filled in first."""
        unit = self.engine.scopes[call].unit
        own = arguments_in(unit, call, frame)
        earlier = own.positional[1 : own.starred]
        words = {**dict(own.keywords), **dict(arguments.keywords)}
        starred = None
        if arguments.starred is not None:
            starred = arguments.starred + len(earlier)
        return Arguments(
            arguments.unit,
            arguments.node,
            (*earlier, *arguments.positional),
            tuple(words.items()),
            starred,
            (*own.unpacked, *arguments.unpacked),
            (call, *arguments.partials),
            arguments.frame,
        )

    def _call_partial(
        self, partial: Partial, frame: Frame | None, arguments: Arguments
    ) -> Answer:
        given = self.filled(partial.call, frame, arguments)
        return (yield from self.invoke(partial.function, given))

    def _call_derivative(
        self, derivative: Derivative, arguments: Arguments
    ) -> list[Object]:
        """A call of `jax.value_and_grad(function)`: a tuple laid out as `layout` says."""
        value = ("invoked", ("itself", derivative.function), arguments)
        parts: list[tuple[Key, Place]] = []
        for index, word in enumerate(derivative.layout):
            if word == "value":
                parts.append((index, value))
            # with `has_aux`, the function gives `(value, auxiliary)`
            elif word == "auxiliary":
                parts.append((index, ("item of", value, 1)))
        return [Layout(Container(arguments.node, "derivative"), tuple(parts))]

    def _get(self, getter: Getter, frame: Frame | None, arguments: Arguments) -> Answer:
        """`attrgetter("state.target")(x)`, `itemgetter(0, 1)(x)`, `methodcaller("step", y)(x)`."""
        if not arguments.positional:
            return []
        source = arguments.positional[0]
        parts: list[Place] = [("item of", source, key) for key in getter.keys]
        for path in getter.paths:
            # attrgetter("state.target"): each attribute is one of what the last one gave
            place = source
            for name in path:
                place = ("attribute of", place, name)
            parts.append(place)
        if len(parts) != 1:
            return [Layout(Container(arguments.node, "got"), tuple(enumerate(parts)))]
        [part] = parts
        if getter.calls:
            # methodcaller("apply_gradient", grads): its other arguments are the method's
            unit = self.engine.scopes[getter.call].unit
            own = arguments_in(unit, getter.call, frame)
            given = replace(own.behind_first(), node=arguments.node)
            part = ("invoked", part, given)
        return [*(yield part)]

    @staticmethod
    def _record(fields: tuple[str, ...], arguments: Arguments) -> Object:
        parts: list[tuple[Key, Place]] = []
        for index, name in enumerate(fields):
            for place in arguments.given(index, name):
                parts += ((index, place), (name, place))
        return Layout(Container(arguments.node, "record"), tuple(parts))

    # What is out of view

    def _call_external(self, name: str, arguments: Arguments) -> Answer:
        behaviour = self.engine.library.function(name)
        if behaviour is not None:
            return (yield from behaviour(self.engine, arguments))
        result = Result(name)
        if name.startswith(NUMBERS) and not result.is_instance:
            return [Result(ARRAY)]
        if self.engine.library.follows(name) or result.is_instance:
            return [result]
        return []

    def _call_method(self, method: Method, arguments: Arguments) -> Answer:
        owner, name = method.owner, method.name
        match owner:
            case Opaque():
                for word, place in arguments.keywords:
                    self.engine.solver.add(("field", owner, word), *(yield place))
                return [owner]
            # Base.__subclasses__()
            case Class():
                heirs = Container(arguments.node, "subclasses")
                return [Layout(heirs, ((None, ("heirs", owner)),))]
            case Instance(cls=cls) | Made(cls=cls):
                # state.replace(optimizer=optimizer), of `flax.struct` or a NamedTuple
                if not (yield from self.engine.heap.has(cls, name)):
                    return [self.replaced(owner, arguments)]
            case Container() | Layout() | InFrame(item=Container()):
                # map(values.append, others), Thread(target=values.put, args=(value,))
                call = arguments.node
                is_named = isinstance(call, ast.Call) and last_name(call.func) == name
                if name in STORING and not is_named:
                    for place in arguments.given(0, ""):
                        self.engine.elements.store(owner, None, place)
                key = arguments.keyword("key") if name == "sort" else None
                if key is not None:
                    yield apply(key, arguments, ("each of", ("itself", owner)))
                return (
                    yield from self.engine.elements.call_method(owner, name, arguments)
                )
        behaviour = self.engine.library.method(owner, name)
        if behaviour is not None:
            return (yield from behaviour(self.engine, arguments))
        return []

    def replaced(self, owner: Instance | Made, arguments: Arguments) -> Object:
        """`dataclasses.replace(state, step=1)`, `state.replace(step=1)`: some fields are new."""
        made = Made(owner.cls, arguments, self._replaced(owner, arguments))
        if arguments.depth == 0:
            self.engine.solver.add(("instances", owner.cls), made)
        return made

    @staticmethod
    def _replaced(owner: Object, arguments: Arguments) -> Place:
        """Of what some fields are replaced."""
        match arguments.node:
            case ast.Call(func=ast.Attribute(value=value, attr="replace" | "_replace")):
                is_function = bool(arguments.positional)
                if not is_function:
                    return ("expression", value, arguments.frame)
        return arguments.positional[0] if arguments.positional else ("itself", owner)


def is_callable(item: Object) -> bool:
    return isinstance(item, CALLABLES) or (
        isinstance(item, InFrame) and isinstance(item.item, Function | Method | Partial)
    )


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
