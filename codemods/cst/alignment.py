"""Arguments that stood below each other, behind an opening parenthesis, and do so again behind one at another column."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from io import StringIO

DEEPER = (2, 4, 8)
"""By how much further arguments may have moved to the right within another call."""


def realigned(before: str, after: str) -> str:
    """New code in which the arguments of changed calls are aligned, where the old code aligned them at the same column."""
    columns = {
        column for call in _calls(before) if (column := _continued_at(call)) == _begins_at(call)
    }
    if not columns:
        return after
    columns |= {column + deeper for column in columns for deeper in DEEPER}
    old, lines = {*before.split("\n")}, after.split("\n")
    fixed = _within_strings(after)
    calls = sorted(_calls(after), key=lambda call: (call.lineno, call.col_offset))
    for number in sorted({call.func.end_lineno or 0 for call in calls}):
        for call in calls:
            if call.func.end_lineno != number or lines[number - 1] in old:
                continue
            column = _continued_at(call)
            inside = range(number + 1, (call.end_lineno or 0) + 1)
            if column in columns and fixed.isdisjoint(inside) and after.isascii():
                for line in inside:
                    lines[line - 1] = _shifted(lines[line - 1], column, _begins_at(call) - column)
    return "\n".join(lines)


def _calls(code: str) -> Iterator[ast.Call]:
    """The calls with several arguments of which the first stands behind the opening parenthesis, and others on further lines."""
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
    tokens = tokenize.generate_tokens(StringIO(code).readline)
    strings = (
        token for token in tokens if token.start[0] < token.end[0] and token.type == tokenize.STRING
    )
    return {line for token in strings for line in range(token.start[0] + 1, token.end[0] + 1)}


def _shifted(line: str, column: int, by: int) -> str:
    indent = len(line) - len(line.lstrip(" "))
    return " " * max(0, indent + by) + line.lstrip(" ") if indent >= column else line
