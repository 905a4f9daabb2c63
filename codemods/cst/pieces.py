"""Call arguments with the comments around them: taken apart, and put together in another way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from codemods.cst.spacing import (
    BLANK,
    EQUAL,
    INDENT,
    NOTHING,
    Newline,
    Space,
    bare,
    newline,
    one_per_line,
    separated,
    source,
)

ALIGNED = 12
"""Arguments that are indented more than this, from their statement, are aligned; others hang."""


@dataclass(frozen=True)
class Piece:
    """An argument with the space ahead of it, and the comment behind it.

    The space has the comments above it. A piece without space is new, and stands as the others do.
    """

    argument: cst.Arg
    before: Space | None = None
    behind: cst.TrailingWhitespace | None = None

    @property
    def value(self) -> cst.BaseExpression:
        return self.argument.value

    @property
    def comments(self) -> list[cst.Comment]:
        found = [line.comment for line in _lines(self.before)]
        if self.behind:
            found.append(self.behind.comment)
        return [comment for comment in found if comment]

    def named(self, keyword: str | None) -> Piece:
        """The same under another keyword, or by position."""
        argument = renamed(self.argument, keyword)
        return replace(self, argument=argument)

    def valued(self, value: cst.BaseExpression) -> Piece:
        """The same with another value."""
        argument = self.argument.with_changes(value=value)
        return replace(self, argument=argument)


def new(keyword: str | None, value: str | cst.BaseExpression) -> Piece:
    """A new argument from a value or its source text."""
    node = cst.parse_expression(value) if isinstance(value, str) else value
    return Piece(renamed(cst.Arg(node), keyword))


def renamed(argument: cst.Arg, keyword: str | None) -> cst.Arg:
    """An argument under another keyword, or by position."""
    if keyword is None:
        return argument.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    name = cst.Name(keyword)
    if argument.keyword is not None:
        return argument.with_changes(keyword=name)
    value = argument.value
    # f(a := 1), but f(b=(a := 1))
    if isinstance(value, cst.NamedExpr) and not value.lpar:
        left = cst.LeftParen()
        right = cst.RightParen()
        value = value.with_changes(lpar=[left], rpar=[right])
    return argument.with_changes(value=value, keyword=name, equal=EQUAL)


class CallLayout:
    """How a call lays out its arguments, and the pieces that these are."""

    def __init__(self, call: cst.Call) -> None:
        opening = call.whitespace_before_args
        behind = [*map(_space_behind, call.args)]
        spaces = (opening, *behind)
        broken = [space for space in spaces if isinstance(space, Newline)]
        self.call = call
        self.opening = opening
        self.closing: Space = NOTHING
        self.trailing_comma = False
        if behind:
            self.closing = _without_comment(behind[-1])
            self.trailing_comma = isinstance(call.args[-1].comma, cst.Comma)
        self.newline = _with_lines(broken[0]) if broken else None
        self.between: Space | None = self.newline
        # f(a, b,
        #   c)
        if len(behind) > 1 and not isinstance(behind[0], Newline):
            self.between = behind[0]
        # Ahead of the first argument, a space without a line break has nothing to keep.
        ahead: Space | None = None
        if isinstance(opening, Newline):
            ahead = _without_comment(opening)
        self.pieces: list[Piece] = []
        for argument, after in zip(call.args, behind, strict=True):
            # The space up to the next argument: first a comment on this one, then those above it.
            piece = Piece(argument, ahead, _line_end(after))
            self.pieces.append(piece)
            ahead = _without_comment(after)

    def arrange(
        self, callee: cst.BaseExpression, pieces: Sequence[Piece], stack: bool = False
    ) -> cst.Call:
        """A call of `callee` in the place of the original, laid out as that was.

        `stack` gives new pieces lines of their own.
        """
        opening = self.opening
        first = pieces[0].before if pieces else None
        # Comments above the first argument stand in the space behind the parenthesis.
        if isinstance(opening, Newline) and self.pieces:
            opening = opening.with_changes(empty_lines=_lines(first))
        elif first is not None and pieces[0].comments:
            opening = first
        between = (self.newline if stack else self.between) or BLANK
        args = self._joined(pieces, between, self.closing, self.trailing_comma)
        return self.call.with_changes(
            func=callee, args=args, whitespace_before_args=opening
        )

    def enclose(
        self,
        callee: cst.BaseExpression,
        pieces: Sequence[Piece],
        hanging: bool,
        base: int,
    ) -> cst.Call:
        """`arrange`, where new arguments may have several lines.

        These are indented further, and break a call that stood on one line. `hanging` leaves the
        last parenthesis on the last line. `base` is how far the call's line is indented within its
        statement. Arguments that were aligned far to the right, below the old callee, move to where
        they hang.
        """
        old = {piece.value for piece in self.pieces}
        tall = [one for one in pieces if one.value not in old and _is_tall(one)]
        if isinstance(self.opening, Newline):
            # step(
            #                 optimizer, batch)
            is_aligned = len(self.opening.last_line.value) > base + ALIGNED
            stacks = is_aligned and not any(
                piece.comments or _is_tall(piece) for piece in self.pieces
            )
        else:
            stacks = bool(tall)
        moved = [
            replace(one, argument=_moved_in(one.argument)) if one in tall else one
            for one in pieces
        ]
        if not stacks:
            return self.arrange(callee, moved)
        arguments = [bare(piece.argument) for piece in moved]
        return self.call.with_changes(
            func=callee,
            args=one_per_line(arguments, base, hanging),
            whitespace_before_args=newline(base + INDENT),
        )

    def nest(self, callee: cst.BaseExpression, pieces: Sequence[Piece]) -> Piece:
        """A call of `callee` as a piece itself.

        Comments of its arguments go above or behind it.
        """
        without = [Piece(piece.argument) for piece in pieces]
        args = self._joined(without, BLANK, NOTHING, trailing_comma=False)
        call = cst.Call(func=callee, args=args)
        nested = Piece(cst.Arg(call))
        return self.annotated(nested, pieces)

    def annotated(self, piece: Piece, others: Iterable[Piece]) -> Piece:
        """A piece with the comments of others: above it, but for one that finds room behind it."""
        above = [*_lines(piece.before)]
        behind = piece.behind
        for other in others:
            above.extend(_lines(other.before))
            # There is room for one comment behind a piece.
            if behind and other.behind:
                line = cst.EmptyLine(comment=other.behind.comment)
                above.append(line)
            behind = behind or other.behind
        before: Newline | None = None
        if self.newline and above:
            before = _with_lines(self.newline, above)
        return replace(piece, before=before, behind=behind)

    def _joined(
        self,
        pieces: Sequence[Piece],
        between: Space,
        closing: Space,
        trailing_comma: bool,
    ) -> list[cst.Arg]:
        ahead = [piece.before or between for piece in pieces[1:]]
        arguments: list[cst.Arg] = []
        spaces: list[Space] = []
        # The space behind a piece is that ahead of the next one.
        for piece, space in zip(pieces, [*ahead, closing], strict=False):
            argument = piece.argument.with_changes(whitespace_after_arg=NOTHING)
            arguments.append(argument)
            spaces.append(self._with_comment(space, piece.behind))
        return separated(arguments, spaces, trailing_comma)

    def _with_comment(
        self, space: Space, comment: cst.TrailingWhitespace | None
    ) -> Space:
        """Some space with a comment ahead of it."""
        if comment is None:
            return space
        broken = space if isinstance(space, Newline) else self.newline
        assert broken is not None, "a comment ends in a line break"
        return broken.with_changes(first_line=comment)


def _is_tall(piece: Piece) -> bool:
    """Whether an argument has several lines."""
    return "\n" in source(piece.value)


def _moved_in(argument: cst.Arg) -> cst.Arg:
    """An argument whose further lines move in by one step."""
    return cst.ensure_type(argument.visit(_MovedIn()), cst.Arg)


class _MovedIn(cst.CSTTransformer):
    def leave_ParenthesizedWhitespace(
        self,
        original_node: cst.ParenthesizedWhitespace,
        updated_node: cst.ParenthesizedWhitespace,
    ) -> cst.ParenthesizedWhitespace:
        lines: list[cst.EmptyLine] = []
        for line in updated_node.empty_lines:
            if line.comment:
                indent = cst.SimpleWhitespace("    " + line.whitespace.value)
                lines.append(line.with_changes(whitespace=indent))
            else:
                lines.append(line)
        last = cst.SimpleWhitespace("    " + updated_node.last_line.value)
        return updated_node.with_changes(empty_lines=lines, last_line=last)


def _space_behind(argument: cst.Arg) -> Space:
    """The space up to the next argument. A comma that opens the next line moves up."""
    comma = argument.comma
    if not isinstance(comma, cst.Comma):
        return argument.whitespace_after_arg
    if isinstance(comma.whitespace_before, Newline):
        return comma.whitespace_before
    return comma.whitespace_after


def _lines(space: Space | None) -> Sequence[cst.EmptyLine]:
    return space.empty_lines if isinstance(space, Newline) else ()


def _line_end(space: Space) -> cst.TrailingWhitespace | None:
    """The rest of the line on which some space begins, if that has a comment."""
    if not isinstance(space, Newline) or not space.first_line.comment:
        return None
    return space.first_line


def _without_comment(space: Space) -> Space:
    """The space without the comment at its beginning, which belongs to what stands ahead."""
    if not isinstance(space, Newline):
        return space
    return space.with_changes(first_line=_bare(space.first_line))


def _bare(line_end: cst.TrailingWhitespace) -> cst.TrailingWhitespace:
    return line_end.with_changes(comment=None, whitespace=NOTHING)


def _with_lines(broken: Newline, lines: Iterable[cst.EmptyLine] = ()) -> Newline:
    """A line break with nothing but lines of comment, indented like the line that follows."""
    indent = broken.indent
    last = broken.last_line
    comments = (line for line in lines if line.comment)
    indented = [line.with_changes(indent=indent, whitespace=last) for line in comments]
    first = _bare(broken.first_line)
    return broken.with_changes(first_line=first, empty_lines=indented)
