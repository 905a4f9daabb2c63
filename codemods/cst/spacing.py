"""White space and commas between the arguments of a call: the one place that puts them there."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

Newline = cst.ParenthesizedWhitespace
Space = cst.BaseParenthesizableWhitespace
NOTHING = cst.SimpleWhitespace("")
BLANK = cst.SimpleWhitespace(" ")
SEPARATOR = cst.Comma(whitespace_after=BLANK)
EQUAL = cst.AssignEqual(NOTHING, NOTHING)

INDENT = 4
"""How much further arguments on lines of their own are indented than the call."""


def source(node: cst.CSTNode) -> str:
    """The source text of a node."""
    return cst.Module([]).code_for_node(node)


def newline(width: int) -> Newline:
    """A line break within brackets, with so many blanks behind it."""
    return Newline(indent=True, last_line=cst.SimpleWhitespace(" " * width))


def one_per_line(
    arguments: Sequence[cst.Arg], base: int, hanging: bool
) -> list[cst.Arg]:
    """Arguments on a line each, of a call that is indented by `base`.

    If they are `hanging`, the last parenthesis is on the last line.
    """
    last = arguments[-1].value
    # A trailing comma would make a bare generator one of several arguments.
    is_bare = isinstance(last, cst.GeneratorExp) and not last.lpar
    trailing_comma = not (hanging or is_bare)
    between = newline(base + INDENT)
    closing = NOTHING if hanging else newline(base)
    return lined_up(arguments, between, closing, trailing_comma)


def lined_up(
    arguments: Sequence[cst.Arg], between: Space, closing: Space, trailing_comma: bool
) -> list[cst.Arg]:
    """Arguments with the same space between any two of them, and another behind the last."""
    spaces = [between] * (len(arguments) - 1)
    return separated(arguments, [*spaces, closing], trailing_comma)


def separated(
    arguments: Sequence[cst.Arg], spaces: Sequence[Space], trailing_comma: bool
) -> list[cst.Arg]:
    """Arguments with commas, and some space behind each of them."""
    found: list[cst.Arg] = []
    for argument, space in zip(arguments, spaces, strict=False):
        is_last = len(found) == len(arguments) - 1
        comma = trailing_comma or not is_last
        found.append(closed(argument, space, comma))
    return found


def closed(argument: cst.Arg, space: Space, comma: bool) -> cst.Arg:
    """An argument with some space behind it, and a comma ahead of that if there is to be one."""
    if not comma:
        return argument.with_changes(
            comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=space
        )
    ahead: Space = NOTHING
    if isinstance(argument.comma, cst.Comma):
        ahead = argument.comma.whitespace_before
    # A comma that opened the next line has moved up.
    if isinstance(ahead, Newline):
        ahead = NOTHING
    new = cst.Comma(ahead, space)
    return argument.with_changes(comma=new)


def bare(argument: cst.Arg) -> cst.Arg:
    """An argument without a comma, and with nothing behind it."""
    return argument.with_changes(
        comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=NOTHING
    )
