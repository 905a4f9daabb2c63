"""What an expression may be: abstract objects, and the calls in whose course they come about.

An object that a function makes is told apart by the call that made it: what `load(optimizer)` gives
is made of this call's argument, not of all arguments that `load` ever gets. The calls by which an
evaluation is reached are its frame (call strings: Sharir and Pnueli 1981).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit

T = TypeVar("T")
Place = Hashable
"""Where objects are: an expression (its `ast` node), or a tuple: `("variable", scope, name)`."""


def interned(cls: type[T]) -> type[T]:
    """Let a class give one object for the same fields.

    Sets of such objects are then fast: they are compared and hashed by identity.
    """
    declared = fields(cls)  # type: ignore[arg-type]
    names = [one.name for one in declared]
    defaults = {one.name: one.default for one in declared if one.default is not MISSING}
    known: WeakValueDictionary[tuple[object, ...], T] = WeakValueDictionary()
    fill: Callable[..., None] = cls.__init__

    def new(own: type[T], *args: object, **kwargs: object) -> T:
        if len(args) < len(names):
            missing = names[len(args) :]
            args = (*args, *[kwargs.get(name, defaults.get(name)) for name in missing])
        found = known.get(args)
        if found is None:
            known[args] = found = object.__new__(own)
            fill(found, *args)
        return found

    cls.__new__ = new  # type: ignore[assignment, method-assign]
    # an object that is there has its fields
    cls.__init__ = object.__init__  # type: ignore[method-assign]
    return cls


@interned
@dataclass(frozen=True, eq=False)
class External:
    """Something outside the project, by its full name: `flax.optim.Adam`, `jax.jit`."""

    name: str


@interned
@dataclass(frozen=True, eq=False)
class Result:
    """What a call of an external function or class gave."""

    name: str

    @property
    def is_instance(self) -> bool:
        """Whether that is a class, as its name is written."""
        return self.name.rpartition(".")[2][:1].isupper()


@interned
@dataclass(frozen=True, eq=False)
class Module:
    """A module or package of the project; `directory` is empty for a plain module."""

    unit: Unit | None
    directory: str = ""


@dataclass(frozen=True, eq=False)
class Function:
    """A function or lambda of the project."""

    unit: Unit
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope


@dataclass(frozen=True, eq=False)
class Class:
    """A class of the project."""

    unit: Unit
    node: ast.ClassDef
    scope: Scope


@interned
@dataclass(frozen=True, eq=False)
class Instance:
    """Any instance of a class: two instances of one class are one abstract object."""

    cls: Class


@interned
@dataclass(frozen=True, eq=False)
class Opaque:
    """A value of unknown origin into a field of which an optimizer is put."""

    place: Place


@interned
@dataclass(frozen=True, eq=False)
class Method:
    """A method bound to its owner.

    It is a function of the project bound to an instance, or a named method of any other object.
    """

    owner: Object
    name: str
    function: Function | None = None


@interned
@dataclass(frozen=True, eq=False)
class Partial:
    """A callable with some arguments filled in, by the call that filled them."""

    call: ast.Call
    function: Object


@interned
@dataclass(frozen=True, eq=False)
class Derivative:
    """What `jax.value_and_grad` and its kin make of a function.

    A call of it gives a tuple laid out as `layout` says: `value` stands for what the function
    returns, `auxiliary` for the second half of that; all other words for the unknown.
    """

    function: Object
    layout: tuple[str, ...]


@interned
@dataclass(frozen=True, eq=False)
class Container:
    """A tuple, list, set, dict or generator, by the node that makes it."""

    node: ast.AST
    role: str = ""


@interned
@dataclass(frozen=True, eq=False)
class Record:
    """The class that `namedtuple("Record", "first second")` makes."""

    fields: tuple[str, ...]


@interned
@dataclass(frozen=True, eq=False)
class Getter:
    """A callable that takes a part of its argument.

    It is made by `operator.attrgetter`, `itemgetter` or `methodcaller`.
    """

    call: ast.Call
    paths: tuple[tuple[str, ...], ...] = ()
    keys: tuple[int | str | None, ...] = ()
    calls: bool = False


@dataclass(frozen=True, eq=False)
class Declared:
    """A callable of which only the annotation is known."""

    annotation: ast.expr


@interned
@dataclass(frozen=True, eq=False)
class LegacyObject:
    """An abstract object that the library makes, such as an optimizer, by its allocation site.

    `kind` is the library's word for it, `made_by` the class that made it, by its name: a member of
    an enumeration of the library's if it has none there, None if no class is known.
    """

    kind: str
    unit: Unit
    node: ast.AST
    made_by: str | Enum | None = None
    evidence: str = "proven"


DEEPEST = 3
"""So many calls within each other are told apart. Within more, arguments are those of any call."""

MOST = 64
"""So many calls of one function are told apart."""

Key: TypeAlias = "int | str | None"
"""An index or key; None for any."""


@interned
@dataclass(frozen=True, eq=False)
class Arguments:
    """What a call gives, as places.

    From `starred` on, positional arguments are unpacked; `unpacked` are those behind two stars.
    `partials` are the calls that filled in arguments before, in the order of these.
    """

    unit: Unit
    node: ast.AST
    positional: tuple[Place, ...] = ()
    keywords: tuple[tuple[str, Place], ...] = ()
    starred: int | None = None
    unpacked: tuple[Place, ...] = ()
    partials: tuple[ast.Call, ...] = ()
    frame: Frame | None = None

    def given(self, index: int | None, name: str) -> list[Place]:
        """The places of what a parameter may get, by position or name."""
        found: list[Place] = []
        if index is not None and index >= 0:
            known = self.positional[: self.starred]
            if index < len(known):
                return [known[index]]
            # step(*batch): the element of that number, or any behind it
            first, *others = self.positional[len(known) :] or (None,)
            if first is not None:
                found += (("item of", first, index - len(known)), *others)
        named = self.keyword(name)
        if named is not None:
            return [named]
        return [*found, *(("item of", place, name) for place in self.unpacked)]

    def argument(self, index: int, name: str) -> Place | None:
        """The place of a parameter's argument, by position or name.

        None if it is not given, or given in a container that is unpacked.
        """
        # step(state, *batch): only what is ahead of the star has a known index
        known = self.positional[: self.starred]
        if index < len(known):
            return known[index]
        return self.keyword(name)

    def keyword(self, name: str) -> Place | None:
        return next((place for word, place in self.keywords if word == name), None)

    def behind_first(self) -> Arguments:
        """The call without its first positional argument."""
        starred = None if self.starred is None else self.starred - 1
        return replace(self, positional=self.positional[1:], starred=starred)

    def constant(self, name: str) -> object:
        """The literal given to a keyword; None if it is not given or is no literal."""
        if isinstance(self.node, ast.Call):
            for keyword in self.node.keywords:
                # jax.grad(loss, has_aux=True)
                if keyword.arg == name and isinstance(keyword.value, ast.Constant):
                    return keyword.value.value
        return None

    @property
    def all(self) -> tuple[Place, ...]:
        return (
            *self.positional,
            *(place for _, place in self.keywords),
            *self.unpacked,
        )

    @cached_property
    def depth(self) -> int:
        return max(map(depth_of, (*self.all, self.frame)), default=0)


UNKNOWN = Arguments(None, None)  # type: ignore[arg-type]
"""A call that gives nothing of which anything is known."""


@interned
@dataclass(frozen=True, eq=False)
class Frame:
    """One call of a function.

    Attributes:
      function: which one.
      arguments: what the call gives; None for any call.
      around: the frame in which the function itself was made.
      owner: the object of which it is a method, which is the first parameter.
    """

    function: Function
    arguments: Arguments | None
    around: Frame | None = None
    owner: Object | None = None

    @cached_property
    def depth(self) -> int:
        within = 1 + max(depth_of(self.arguments), depth_of(self.owner))
        return max(within, depth_of(self.around))


def depth_of(part: object) -> int:
    """How many calls something is within."""
    match part:
        case Arguments() | Frame():
            return part.depth
        case tuple():
            return max(map(depth_of, part), default=0)
        case InFrame(frame=frame):
            return frame.depth
        case Made(arguments=arguments):
            return arguments.depth
        case Layout():
            return part.depth
        case Method(owner=owner):
            return depth_of(owner)
        case Partial(function=function) | Derivative(function=function):
            return depth_of(function)
    return 0


@interned
@dataclass(frozen=True, eq=False)
class InFrame:
    """A function, container or partial application that came about in the course of a call."""

    item: Function | Method | Container | Partial | Getter
    frame: Frame


@interned
@dataclass(frozen=True, eq=False)
class Made:
    """An instance of a class, by the call that makes it.

    One that `replace` makes has all fields that it is not given from what is at `source`.
    """

    cls: Class
    arguments: Arguments
    source: Place = None


@interned
@dataclass(frozen=True, eq=False)
class Layout:
    """A container whose elements are those at some places, by key."""

    item: Container
    parts: tuple[tuple[Key, Place], ...]

    @cached_property
    def depth(self) -> int:
        return 1 + max((depth_of(place) for _, place in self.parts), default=0)


@interned
@dataclass(frozen=True, eq=False)
class Called:
    """A call that reaches a function: no object, but what the places of callers hold.

    The first `offset` parameters are bound to something else, such as `self`.
    """

    arguments: Arguments
    offset: int = 0


@interned
@dataclass(frozen=True, eq=False)
class Stored:
    """An element of a container: no object, but what the places of entries hold.

    A `key` of `SHIFTED` says that elements may be at any index, and has no place.
    """

    key: Key
    place: Place


SHIFTED = "shifted"


Object = (
    External
    | Result
    | Opaque
    | Module
    | Function
    | Class
    | Instance
    | Method
    | Partial
    | Derivative
    | Container
    | Record
    | Declared
    | Getter
    | LegacyObject
    | InFrame
    | Made
    | Layout
    | Called
    | Stored
)


def method(owner: Object, name: str, function: Function | None = None) -> Method:
    """A method bound to its owner."""
    return Method(cast("Any", owner), name, function)


def plain(item: object) -> object:
    """An object without the calls in whose course it came about."""
    match item:
        case InFrame(item=inner) | Layout(item=inner):
            return inner
        case Made(cls=cls):
            return Instance(cls)
        case Method(owner=owner, name=name, function=function):
            return Method(plain(owner), name, function)  # type: ignore[arg-type]
        case Partial(call=call, function=function):
            return Partial(call, plain(function))  # type: ignore[arg-type]
        case Derivative(function=function, layout=layout):
            return Derivative(plain(function), layout)  # type: ignore[arg-type]
    return item
