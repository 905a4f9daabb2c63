"""The layout of call arguments: taken apart into arguments and comments, and put together in another order or another call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import libcst as cst

Newline = cst.ParenthesizedWhitespace
Space = cst.BaseParenthesizableWhitespace
NOTHING = cst.SimpleWhitespace("")
BLANK = cst.SimpleWhitespace(" ")


@dataclass(frozen=True)
class Piece:
    """An argument with the space ahead of it, which holds the comments above it, and the comment behind it.

    `before` is None if the argument is new, and stands where others like it stand.
    """

    argument: cst.Arg
    before: Space | None = None
    behind: cst.Comment | None = None

    @property
    def value(self) -> cst.BaseExpression:
        return self.argument.value

    @property
    def above(self) -> list[cst.EmptyLine]:
        return _comments(self.before)

    @property
    def commented(self) -> bool:
        return self.behind is not None or bool(self.above)

    def named(self, keyword: str | None) -> Piece:
        """The same under another keyword, or by position."""
        return replace(self, argument=renamed(self.argument, keyword))

    def valued(self, value: cst.BaseExpression) -> Piece:
        """The same with another value."""
        return replace(self, argument=self.argument.with_changes(value=value))

    def bare(self) -> Piece:
        """The argument alone."""
        return Piece(self.argument)


def new(keyword: str | None, source: str) -> Piece:
    """A new argument from source text."""
    return Piece(renamed(cst.Arg(cst.parse_expression(source)), keyword))


def renamed(argument: cst.Arg, keyword: str | None) -> cst.Arg:
    """An argument under another keyword, or by position."""
    if keyword is None:
        return argument.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    if argument.keyword is not None:
        return argument.with_changes(keyword=cst.Name(keyword))
    value = argument.value
    if isinstance(value, cst.NamedExpr) and not value.lpar:  # f(a := 1), but f(b=(a := 1))
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return argument.with_changes(value=value, keyword=cst.Name(keyword), equal=cst.AssignEqual(NOTHING, NOTHING))


class Style:
    """How a call lays out its arguments, and the pieces that these are."""

    def __init__(self, call: cst.Call) -> None:
        self.call = call
        spaces = [call.whitespace_before_args, *map(_space_after, call.args)]
        self.opening, self.closing = spaces[0], spaces[-1] if call.args else NOTHING
        self.trailing_comma = bool(call.args) and isinstance(call.args[-1].comma, cst.Comma)
        self.newline = next((_stripped(space) for space in spaces if isinstance(space, Newline)), None)
        self.between = _stripped(spaces[1]) if len(spaces) > 2 else self.newline or BLANK
        self.pieces = [
            Piece(_alone(argument), spaces[index], _behind(spaces[index + 1])) for index, argument in enumerate(call.args)
        ]

    def arrange(self, callee: cst.BaseExpression, pieces: Sequence[Piece]) -> cst.Call:
        """A call of `callee` that looks as the original did, instead of which it stands."""
        args = self._joined(pieces, self.between, self.closing, self.trailing_comma)
        opening = self.opening
        above = pieces[0].above if pieces else []
        if isinstance(opening, Newline):
            opening = opening.with_changes(empty_lines=[line for line in opening.empty_lines if not line.comment] + above)
        elif above and self.newline:
            opening = self.newline.with_changes(empty_lines=above)
        return self.call.with_changes(func=callee, args=args, whitespace_before_args=opening)

    def nest(self, callee: cst.BaseExpression, pieces: Sequence[Piece]) -> Piece:
        """A call of `callee` that is an argument itself. It takes over the comments of its only argument."""
        pieces = [replace(piece, before=self._above(piece.above)) for piece in pieces]
        if self.newline is None or len(pieces) < 2 or not any(piece.commented for piece in pieces):
            args = self._joined([piece.bare() for piece in pieces], BLANK, NOTHING, False)
            before, behind = (pieces[0].before, pieces[0].behind) if len(pieces) == 1 else (None, None)
            return Piece(cst.Arg(cst.Call(func=callee, args=args)), before, behind)
        step = len(self.newline.last_line.value)
        deeper = self.newline.with_changes(last_line=cst.SimpleWhitespace(" " * (step + (step if step in (2, 4) else 4))))
        opening = deeper.with_changes(empty_lines=_indented(pieces[0].above, deeper))
        args = self._joined(pieces, deeper, self.newline, True)
        return Piece(cst.Arg(cst.Call(func=callee, args=args, whitespace_before_args=opening)))
