"""The types in an annotation, and the way from an annotated value to its parts of these types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.vocabulary import words

Step = int | str | None
"""An index, None for every element, `"returned"` for what a callable returns."""

Steps = tuple[tuple[ast.expr, Step], ...]
"""Steps from a value to a part of it, each with the annotation that allows it."""

SAME = words(
    "Optional Union Annotated Final ClassVar Required NotRequired ReadOnly Awaitable"
)
MAPPINGS = words(
    "Dict Mapping MutableMapping OrderedDict DefaultDict FrozenDict dict defaultdict"
)
TUPLES = words("Tuple tuple")
COLLECTIONS = words(
    "List Sequence MutableSequence Iterable Iterator Generator Set FrozenSet Deque "
    "AsyncIterator AsyncIterable AsyncGenerator Collection ContextManager "
    "list set frozenset deque"
)


@dataclass(frozen=True)
class TypeWithin:
    """A plain type in an annotation, and the steps from the annotated value to what has it."""

    type: ast.expr
    path: Steps = ()


def types_within(annotation: ast.expr, path: Steps = ()) -> Iterator[TypeWithin]:
    """`X` in `X`, `Optional[X]`, `X | None`, `List[X]`, `Dict[str, X]`, `Callable[..., X]`.

    Of `Type[X]` a value is the class itself: `Type[X]` is found, and `X` is not. A type may be in
    quotes.
    """
    match annotation:
        case ast.Name() | ast.Attribute() | ast.Constant(value=str()):
            yield TypeWithin(annotation, path)
        case ast.Subscript(
            value=ast.Name(id="Type" | "type") | ast.Attribute(attr="Type")
        ):
            yield TypeWithin(annotation, path)
        # X | Y
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from types_within(left, path)
            yield from types_within(right, path)
        # typing.List[X]
        case ast.Subscript(
            value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner
        ):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            for part, steps in parts_of(annotation, name, parts):
                yield from types_within(part, (*path, *steps))
        case _:
            return


def parts_of(
    annotation: ast.expr, name: str, parts: list[ast.expr]
) -> Iterator[tuple[ast.expr, Steps]]:
    """The arguments of a generic type that are types of parts, with the steps to these."""
    if name in SAME:
        types = parts[:1] if name == "Annotated" else parts
        for part in types:
            yield part, ()
    elif name in MAPPINGS and len(parts) == 2:
        yield parts[1], ((annotation, None),)
    elif name in TUPLES:
        # Tuple[X, ...]
        any_length = len(parts) == 2 and isinstance(parts[1], ast.Constant)
        for index, part in enumerate(parts):
            yield part, ((annotation, None if any_length else index),)
    elif name in COLLECTIONS:
        yield parts[0], ((annotation, None),)
    elif name == "Callable" and len(parts) == 2:
        yield parts[1], ((annotation, "returned"),)


def quoted_types(annotation: ast.expr) -> Iterator[ast.Constant]:
    """The types in quotes within an annotation.

    The values of `Literal[…]`, and what `Annotated[…]` adds to its type, are none.
    """
    match annotation:
        case ast.Constant(value=str()):
            yield annotation
        case ast.Subscript(
            value=ast.Name(id="Literal") | ast.Attribute(attr="Literal")
        ):
            return
        case ast.Subscript(
            value=ast.Name(id="Annotated") | ast.Attribute(attr="Annotated"),
            slice=ast.Tuple(elts=parts),
        ):
            yield from quoted_types(parts[0])
        case ast.Subscript(slice=inner):
            yield from quoted_types(inner)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from quoted_types(left)
            yield from quoted_types(right)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from quoted_types(part)


def is_generic_type(node: ast.expr) -> bool:
    """Whether an expression is a type such as `Callable[…]`, by its name."""
    match node:
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in (*SAME, *MAPPINGS, *TUPLES, *COLLECTIONS, "Callable", "Type")
    return False


def direct_types(annotation: ast.expr) -> list[ast.expr]:
    """The types of which an annotated value is itself an instance."""
    return [named.type for named in types_within(annotation) if not named.path]
