"""What calls of functions outside the project give: behaviours, each an equation."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeAlias

from codemods.inference.objects import (
    Arguments,
    Container,
    Derivative,
    InFrame,
    Key,
    Layout,
    Object,
    Partial,
    Place,
)

if TYPE_CHECKING:
    from codemods.inference.engine import Inference

Answer: TypeAlias = Generator[Place, tuple[Object, ...], list[Object]]
Behaviour: TypeAlias = "Callable[[Inference, Arguments], Answer]"

DEEPEST_WRAPPING = 3
"""`f = partial(f, …)` in a loop must not wrap without end."""


def apply(function: Place, arguments: Arguments, *positional: Place) -> Place:
    """What `function` gives for some arguments, in the course of another call."""
    inner = Arguments(arguments.unit, arguments.node, positional, frame=arguments.frame)
    return ("invoked", function, inner)


def boxed(arguments: Arguments, role: str, *parts: tuple[Key, Place]) -> Object:
    """A container that a call makes."""
    return Layout(Container(arguments.node, role), parts)


def hands_through(index: int, name: str) -> Behaviour:
    """The result is, or is like, one of the arguments."""

    def behaviour(_: Inference, arguments: Arguments) -> Answer:
        place = arguments.argument(index, name)
        return [] if place is None else [*(yield place)]

    return behaviour


first = hands_through(0, "")


def wrapping(item: object) -> int:
    """How often a callable is wrapped in partial applications and derivatives."""
    if isinstance(item, InFrame):
        return wrapping(item.item)
    if not isinstance(item, Partial | Derivative):
        return 0
    return 1 + wrapping(item.function)
