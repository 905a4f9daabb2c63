"""The arguments of a legacy constructor call, and the optax calls that they are laid out in, comments and line breaks kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import libcst as cst

from codemods.optimizers.base import Parameter
from codemods.template import expression

RATE = "learning_rate"
UNSET_RATE = "0.0"
"""Stands where legacy gave no learning rate because every step sets one."""

Space = cst.BaseParenthesizableWhitespace
NOTHING = cst.SimpleWhitespace("")
BLANK = cst.SimpleWhitespace(" ")
NO_SPACE = cst.AssignEqual(NOTHING, NOTHING)
NUMPY = ("np", "numpy", "onp")


@dataclass(frozen=True)
class Piece:
    """An argument with what stands around it.

    `before` is the space ahead of it, with the comments above it; None if it is new, or moved to another call. `behind` is the
    comment at the end of its line.
    """

    argument: cst.Arg
    before: Space | None = None
    behind: str = ""

    @property
    def value(self) -> cst.BaseExpression:
        return self.argument.value

    @property
    def above(self) -> tuple[cst.EmptyLine, ...]:
        """The lines of comment above it."""
        lines = self.before.empty_lines if isinstance(self.before, cst.ParenthesizedWhitespace) else ()
        return tuple(line for line in lines if line.comment is not None)

    @property
    def commented(self) -> bool:
        return bool(self.above or self.behind)

    def named(self, keyword: str | None) -> Piece:
        """The same argument under another keyword, or by position."""
        return replace(self, argument=renamed(self.argument, keyword))

    def valued(self, value: cst.BaseExpression) -> Piece:
        return replace(self, argument=self.argument.with_changes(value=value))


def new(keyword: str | None, value: str | cst.BaseExpression) -> Piece:
    """A new argument."""
    return Piece(renamed(cst.Arg(expression(value) if isinstance(value, str) else value), keyword))


def renamed(argument: cst.Arg, keyword: str | None) -> cst.Arg:
    if keyword is None:
        return argument.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    if argument.keyword is not None:
        return argument.with_changes(keyword=cst.Name(keyword))
    value = argument.value
    if isinstance(value, cst.NamedExpr) and not value.lpar:  # f(x := 1) needs no parentheses, f(y=(x := 1)) does
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return argument.with_changes(value=value, keyword=cst.Name(keyword), equal=NO_SPACE)


class Arguments:
    """The arguments of a call by parameter, in the order in which they are written."""

    def __init__(self, call: cst.Call, signature: tuple[Parameter, ...]) -> None:
        self.call = call
        self.style = _Style(call)
        self.by_name: dict[str, Piece] = {}
        self.unused: dict[str, Piece] = {}
        for index, piece in enumerate(self.style.pieces):
            keyword = piece.argument.keyword
            self.by_name[keyword.value if keyword else signature[index].name] = piece

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def drop_if(self, name: str, value: object) -> None:
        """Forget an argument that is this constant, which says nothing, unless a comment stands beside it."""
        if name in self.by_name and constant(self.by_name[name].value) == value and not self.by_name[name].commented:
            del self.by_name[name]

    def named(self, names: Mapping[str, str], **defaults: str) -> list[Piece]:
        """The arguments among `names`, under their new names; of `defaults`, by new name, those that are not given."""
        given = {names[name]: piece for name, piece in self.by_name.items() if name in names}
        written = [piece.named(keyword) for keyword, piece in given.items()]
        return written + [new(keyword, value) for keyword, value in defaults.items() if keyword not in given]

    def rate(self, inject: bool) -> Piece:
        """The learning rate, as optax takes it.

        Injection passes over NumPy scalars, and makes integers arrays of integers, so these become floats.
        """
        piece = self.by_name.get(RATE, new(RATE, UNSET_RATE))
        if not inject:
            return piece
        match piece.value:
            case cst.Name("None"):
                piece = piece.valued(cst.Float(UNSET_RATE))
            case cst.Integer(value=digits):
                piece = (
                    piece.valued(piece.value.with_changes(value=digits))
                    if not digits.isdecimal()
                    else piece.valued(cst.Float(f"{digits}.0", lpar=piece.value.lpar, rpar=piece.value.rpar))
                )
            case cst.Call(func=cst.Attribute(value=cst.Name(module), attr=cst.Name(kind))) if (
                module in NUMPY and kind.startswith("float")
            ):
                piece = piece.valued(expression("float({rate})", rate=piece.value))
        return piece.named(RATE)
