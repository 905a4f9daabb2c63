"""Arguments that are aligned behind an opening parenthesis, and are again when that has moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.sources.modules import Unit
from codemods.sources.text import TEXT_OR_COMMENT

Argument = ast.expr | ast.keyword
DEEPER = (2, 4, 8)
"""By how much further arguments may have moved to the right within another call."""


def realigned(before: Unit, after: Unit) -> str:
    """New code in which the arguments of changed calls are aligned again.

    These are calls whose further lines begin at a column at which old calls had aligned arguments.
    """
    old = {*before.code.split("\n")}
    lines = after.code.split("\n")
    # The outer calls of a line first: they move the inner ones.
    calls = sorted(_calls(after), key=_position)
    by_line: dict[int, list[ast.Call]] = {}
    for call in calls:
        by_line.setdefault(call.func.end_lineno or 0, []).append(call)
    if all(lines[number - 1] in old for number in by_line):
        return after.code
    columns: set[int] = set()
    for call in _calls(before):
        column = _begins_at(call)
        if _continued_at(call) == column:
            columns.add(column)
    if not columns:
        return after.code
    columns |= {column + deeper for column in columns for deeper in DEEPER}
    fixed = _within_strings(after.code)
    for number in sorted(by_line):
        for call in by_line[number]:
            # A line that is as it was has its arguments below as they were, too.
            if lines[number - 1] in old:
                continue
            column = _continued_at(call)
            if column not in columns:
                continue
            # Lines within a string must stay; columns of `ast` are characters in ASCII alone.
            last = call.end_lineno or 0
            inside = range(number + 1, last + 1)
            if not fixed.isdisjoint(inside) or not after.code.isascii():
                continue
            by = _begins_at(call) - column
            for line in inside:
                text = lines[line - 1]
                lines[line - 1] = _shifted(text, column, by)
    return "\n".join(lines)


def _calls(unit: Unit) -> Iterator[ast.Call]:
    """The calls whose arguments begin behind the opening parenthesis and go on below.

    ```
    step(optimizer,
         batch)
    ```
    """
    for node in unit.nodes:
        if not isinstance(node, ast.Call) or node.end_lineno == node.lineno:
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
    for text in TEXT_OR_COMMENT.finditer(code):
        more = text[0].count("\n")
        if more:
            first = code.count("\n", 0, text.start()) + 1
            found.update(range(first + 1, first + more + 1))
    return found


def _shifted(line: str, column: int, by: int) -> str:
    text = line.lstrip(" ")
    indent = len(line) - len(text)
    if indent < column:
        return line
    return " " * max(0, indent + by) + text
