"""Rewritten calls, in the layout of the originals."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from codemods.cst.comments import comments_of
from codemods.cst.spacing import (
    BLANK,
    INDENT,
    NOTHING,
    bare,
    newline,
    one_per_line,
    source,
)

ALIGNED = 12
"""Arguments that are indented more than this, from their statement, are aligned; others hang."""


def enclose(
    call: cst.Call,
    callee: cst.BaseExpression,
    arguments: Sequence[cst.Arg],
    hanging: bool,
    base: int,
) -> cst.Call:
    """`arrange`, where new arguments may have several lines.

    These are indented further, and break a call that stood on one line. `hanging` leaves the last
    parenthesis on the last line. `base` is how far the call's line is indented within its
    statement. Arguments that were aligned far to the right, below the old callee, move to where
    they hang.
    """
    old = {argument.value for argument in call.args}
    has_tall = False
    moved: list[cst.Arg] = []
    for item in arguments:
        is_tall = item.value not in old and "\n" in source(item.value)
        has_tall = has_tall or is_tall
        moved.append(_deeper(item) if is_tall else item)
    before = call.whitespace_before_args
    if isinstance(before, cst.ParenthesizedWhitespace):
        # step(
        #                 optimizer, batch)
        is_aligned = len(before.last_line.value) > base + ALIGNED
        stacks = (
            is_aligned
            and not any(map(comments_of, call.args))
            and not _has_tall(call.args)
        )
    else:
        stacks = has_tall
    if stacks:
        return _stacked(call, callee, moved, hanging, base)
    return arrange(call, callee, moved)


def _has_tall(arguments: Sequence[cst.Arg]) -> bool:
    """Whether some argument has several lines."""
    return any("\n" in source(argument.value) for argument in arguments)


def arrange(
    call: cst.Call, callee: cst.BaseExpression, arguments: Sequence[cst.Arg]
) -> cst.Call:
    """A call with a new callee and new arguments.

    Each is on its own line if they were, and a trailing comma stays.
    """
    before = call.whitespace_before_args
    multiline = isinstance(before, cst.ParenthesizedWhitespace)
    last = call.args[-1] if call.args else None
    # The first comma without a comment is the model for all.
    plain = (argument for argument in call.args[:-1] if not comments_of(argument))
    model = next(plain, None)
    space = before if multiline else BLANK
    between = cst.Comma(whitespace_after=space) if model is None else model.comma
    arranged = []
    for index, argument in enumerate(arguments):
        was_last = last is not None and argument.value is last.value
        if index < len(arguments) - 1:
            arranged.append(_continued(argument, was_last, before, between))
        elif last is None or was_last:
            arranged.append(argument)
        # Another argument is the last now: it closes the call in the place of the old one.
        elif comments_of(argument):
            arranged.append(_closing_behind_comment(last, argument))
        else:
            arranged.append(_closing_as(last, argument))
    return call.with_changes(func=callee, args=arranged)


def _stacked(
    call: cst.Call,
    callee: cst.BaseExpression,
    arguments: Sequence[cst.Arg],
    hanging: bool,
    base: int,
) -> cst.Call:
    """A call with each argument on its own line."""
    args = one_per_line([bare(argument) for argument in arguments], base, hanging)
    return call.with_changes(
        func=callee, whitespace_before_args=newline(base + INDENT), args=args
    )


def _deeper(argument: cst.Arg) -> cst.Arg:
    """An argument whose further lines move in by one step."""
    return cst.ensure_type(argument.visit(_Deeper()), cst.Arg)


class _Deeper(cst.CSTTransformer):
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


def _continued(
    argument: cst.Arg,
    was_last: bool,
    before: cst.BaseParenthesizableWhitespace,
    between: cst.Comma | cst.MaybeSentinel,
) -> cst.Arg:
    """An argument that another one follows."""
    # An argument that was followed by another keeps its comma, and the comment behind that.
    if not was_last and isinstance(argument.comma, cst.Comma):
        return argument
    comma = between
    if comments_of(argument):
        comma = cst.Comma(whitespace_after=_comment_then(argument, before))
    return argument.with_changes(comma=comma, whitespace_after_arg=NOTHING)


def _comment_then(
    last: cst.Arg, before: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """The comment behind what was the last argument, then a new line for the next."""
    after = _space_behind(last)
    if not isinstance(after, cst.ParenthesizedWhitespace):
        return after
    if not isinstance(before, cst.ParenthesizedWhitespace):
        return after
    return after.with_changes(indent=before.indent, last_line=before.last_line)


def _space_behind(argument: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    """The white space between an argument, with its comma, and what comes next."""
    if isinstance(argument.comma, cst.Comma):
        return argument.comma.whitespace_after
    return argument.whitespace_after_arg


def _closing_as(last: cst.Arg, argument: cst.Arg) -> cst.Arg:
    """A new last argument that closes the call as the old one did.

    The comment behind the old one belongs to that, and is left out.
    """
    comma = last.comma
    after = last.whitespace_after_arg
    if comments_of(last):
        match comma:
            case cst.Comma(whitespace_after=cst.ParenthesizedWhitespace() as space):
                comma = comma.with_changes(whitespace_after=_without_comments(space))
            case _ if isinstance(after, cst.ParenthesizedWhitespace):
                after = _without_comments(after)
    return argument.with_changes(comma=comma, whitespace_after_arg=after)


def _without_comments(
    space: cst.ParenthesizedWhitespace,
) -> cst.ParenthesizedWhitespace:
    return space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())


def _closing_behind_comment(last: cst.Arg, argument: cst.Arg) -> cst.Arg:
    """A new last argument with the comment behind it, and the closing parenthesis where it was."""
    closing = _space_behind(last)
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        return argument
    match argument.comma:
        case cst.Comma(whitespace_after=cst.ParenthesizedWhitespace() as behind):
            space = behind.with_changes(
                indent=closing.indent, last_line=closing.last_line
            )
            return argument.with_changes(comma=cst.Comma(whitespace_after=space))
    return argument
