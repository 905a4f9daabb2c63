"""Arguments that are aligned behind an opening parenthesis, and are again when that has moved."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from io import StringIO

DEEPER = (2, 4, 8)
"""By how much further arguments may have moved to the right within another call."""


def realigned(before: str, after: str) -> str:
    """New code in which the arguments of changed calls are aligned again.

    These are calls whose further lines begin at a column at which old calls had aligned arguments.
    """
    aligned = [
        call for call in _calls(before) if _continued_at(call) == _begins_at(call)
    ]
    columns = {*map(_begins_at, aligned)}
    if not columns:
        return after
    columns |= {column + deeper for column in columns for deeper in DEEPER}
    old = {*before.split("\n")}
    lines = after.split("\n")
    fixed = _within_strings(after)
    # The outer calls of a line first: they move the inner ones.
    calls = sorted(_calls(after), key=lambda call: (call.lineno, call.col_offset))
    numbers = {call.func.end_lineno or 0 for call in calls}
    for number in sorted(numbers):
        for call in calls:
            # A line that is as it was has its arguments below as they were, too.
            if call.func.end_lineno != number or lines[number - 1] in old:
                continue
            column = _continued_at(call)
            last = call.end_lineno or 0
            inside = range(number + 1, last + 1)
            # Lines within a string must stay; columns of `ast` are characters in ASCII alone.
            if (
                column not in columns
                or not fixed.isdisjoint(inside)
                or not after.isascii()
            ):
                continue
            by = _begins_at(call) - column
            for line in inside:
                lines[line - 1] = _shifted(lines[line - 1], column, by)
    return "\n".join(lines)


def _calls(code: str) -> Iterator[ast.Call]:
    """The calls whose arguments begin behind the opening parenthesis and go on below.

    ```
    step(optimizer,
         batch)
    ```
    """
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        arguments = _arguments(node)
        if len(arguments) < 2:
            continue
        first = arguments[0].lineno
        last = arguments[-1].lineno
        if first == node.func.end_lineno and last > first:
            yield node


def _arguments(call: ast.Call) -> list[ast.expr | ast.keyword]:
    """The arguments of a call in the order of the source."""
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return sorted(arguments, key=lambda one: (one.lineno, one.col_offset))


def _begins_at(call: ast.Call) -> int:
    return _arguments(call)[0].col_offset


def _continued_at(call: ast.Call) -> int:
    """The column at which all further lines of arguments begin; -1 if they differ."""
    starts: dict[int, int] = {}
    for argument in _arguments(call)[1:]:
        starts.setdefault(argument.lineno, argument.col_offset)
    # Arguments beside the first are on no further line.
    starts.pop(call.func.end_lineno or 0, None)
    columns = {*starts.values()}
    return columns.pop() if len(columns) == 1 else -1


def _within_strings(code: str) -> set[int]:
    """The lines that begin within a string."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(StringIO(code).readline):
        if token.type == tokenize.STRING:
            first, _ = token.start
            last, _ = token.end
            found.update(range(first + 1, last + 1))
    return found


def _shifted(line: str, column: int, by: int) -> str:
    indent = len(line) - len(line.lstrip(" "))
    if indent < column:
        return line
    return " " * max(0, indent + by) + line.lstrip(" ")
