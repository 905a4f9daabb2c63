"""Arguments that are aligned behind an opening parenthesis, and are again when that has moved."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from io import StringIO

Argument = ast.expr | ast.keyword
DEEPER = (2, 4, 8)
"""By how much further arguments may have moved to the right within another call."""


def realigned(before: str, after: str) -> str:
    """New code in which the arguments of changed calls are aligned again.

    These are calls whose further lines begin at a column at which old calls had aligned arguments.
    """
    columns: set[int] = set()
    for call in _calls(before):
        column = _begins_at(call)
        if _continued_at(call) == column:
            columns.add(column)
    if not columns:
        return after
    columns |= {column + deeper for column in columns for deeper in DEEPER}
    old = {*before.split("\n")}
    lines = after.split("\n")
    fixed = _within_strings(after)
    # The outer calls of a line first: they move the inner ones.
    calls = sorted(_calls(after), key=_position)
    numbers = {call.func.end_lineno or 0 for call in calls}
    for number in sorted(numbers):
        for call in calls:
            if call.func.end_lineno != number:
                continue
            # A line that is as it was has its arguments below as they were, too.
            if lines[number - 1] in old:
                continue
            column = _continued_at(call)
            if column not in columns:
                continue
            # Lines within a string must stay; columns of `ast` are characters in ASCII alone.
            last = call.end_lineno or 0
            inside = range(number + 1, last + 1)
            if not fixed.isdisjoint(inside) or not after.isascii():
                continue
            by = _begins_at(call) - column
            for line in inside:
                text = lines[line - 1]
                lines[line - 1] = _shifted(text, column, by)
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


def _arguments(call: ast.Call) -> list[Argument]:
    """The arguments of a call in the order of the source."""
    arguments: list[Argument] = [*call.args, *call.keywords]
    return sorted(arguments, key=_position)


def _position(node: Argument) -> tuple[int, int]:
    return node.lineno, node.col_offset


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
    text = line.lstrip(" ")
    indent = len(line) - len(text)
    if indent < column:
        return line
    return " " * max(0, indent + by) + text
