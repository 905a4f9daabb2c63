"""What an expression may be: abstract objects, and the calls in whose course they come about.

An object that a function makes is told apart by the call that made it: what `load(optimizer)` gives
is made of this call's argument, not of all arguments that `load` ever gets. The calls by which an
evaluation is reached are its frame (call strings: Sharir and Pnueli 1981).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

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
    Opaque,
    Partial,
    Place,
    Record,
    Result,
    interned,
)
from codemods.sources.modules import Unit

__all__ = [
    "Arguments",
    "Class",
    "Container",
    "Declared",
    "Derivative",
    "External",
    "Frame",
    "Function",
    "Getter",
    "InFrame",
    "Instance",
    "LegacyObject",
    "Made",
    "Method",
    "Module",
    "Namespace",
    "Object",
    "Opaque",
    "Partial",
    "Place",
    "Record",
    "Result",
    "method",
    "plain",
]

DEEPEST = 3
"""So many calls within each other are told apart. Within more, arguments are those of any call."""

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
        parts = (self.arguments, self.around, self.owner)
        return 1 + max(map(depth_of, parts))


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

    item: Function | Container | Partial | Getter
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
    """An element that a container got after it was made: no object, but what `stored` places hold.

    A `key` of `SHIFTED` says that elements may be at any index, and has no place.
    """

    key: Key
    place: Place


SHIFTED = "shifted"


Object: TypeAlias = (
    "External | Result | Opaque | Module | Function | Class | Instance | Namespace | Method | "
    "Partial | Derivative | Container | Record | Getter | Declared | LegacyObject | "
    "InFrame | Made | Layout | Called | Stored | Derived | AnyDerived"
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
        case Partial(call=call, function=function, is_method=is_method):
            return Partial(call, plain(function), is_method)  # type: ignore[arg-type]
        case Derivative(function=function, layout=layout):
            return Derivative(plain(function), layout)  # type: ignore[arg-type]
    return item
