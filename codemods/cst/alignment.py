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
    aligned = [call for call in _calls(before) if _continued_at(call) == _begins_at(call)]
    columns = {*map(_begins_at, aligned)}
    if not columns:
        return after
    columns |= {column + deeper for column in columns for deeper in DEEPER}
    old = {*before.split("\n")}
    lines = after.split("\n")
    fixed = _within_strings(after)
    # The outer calls of a line first: they move the inner ones.
    calls = sorted(_calls(after), key=lambda call: (call.lineno, call.col_offset))
    for number in sorted({call.func.end_lineno or 0 for call in calls}):
        for call in calls:
            if call.func.end_lineno != number or lines[number - 1] in old:
                continue
            column = _continued_at(call)
            inside = range(number + 1, (call.end_lineno or 0) + 1)
            if column in columns and fixed.isdisjoint(inside) and after.isascii():
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
        if isinstance(node, ast.Call):
            first, *others = _arguments(node) or [node]
            if others and first.lineno == node.func.end_lineno and others[-1].lineno > first.lineno:
                yield node


def _arguments(call: ast.Call) -> list[ast.expr | ast.keyword]:
    return sorted([*call.args, *call.keywords], key=lambda one: (one.lineno, one.col_offset))


def _begins_at(call: ast.Call) -> int:
    return _arguments(call)[0].col_offset


def _continued_at(call: ast.Call) -> int:
    """The column at which all further lines of arguments begin; -1 if they differ."""
    starts: dict[int, int] = {}
    for argument in _arguments(call)[1:]:
        starts.setdefault(argument.lineno, argument.col_offset)
    starts.pop(call.func.end_lineno or 0, None)
    columns = {*starts.values()}
    return columns.pop() if len(columns) == 1 else -1


def _within_strings(code: str) -> set[int]:
    """The lines that begin within a string."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(StringIO(code).readline):
        if token.type == tokenize.STRING:
            found.update(range(token.start[0] + 1, token.end[0] + 1))
    return found


def _shifted(line: str, column: int, by: int) -> str:
    indent = len(line) - len(line.lstrip(" "))
    if indent < column:
        return line
    return " " * max(0, indent + by) + line.lstrip(" ")
