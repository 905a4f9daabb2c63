"""Pieces of a file replaced by others; everything else in a line stays as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from codemods.sources.modules import Unit

Splice = tuple[int, int, str]
"""Where a piece begins and ends, in characters, and its new text."""


def spliced(code: str, splices: Sequence[Splice]) -> str:
    """The code with some pieces replaced, none of which overlap."""
    for start, end, text in sorted(splices, reverse=True):
        code = code[:start] + text + code[end:]
    return code


def extent(unit: Unit, node: ast.expr | ast.stmt | ast.alias) -> tuple[int, int]:
    """Where a node begins and ends."""
    columns = unit.columns
    start = columns.offset(node.lineno, node.col_offset)
    end = columns.offset(node.end_lineno, node.end_col_offset)
    return start, end


def without(
    unit: Unit,
    statement: ast.Import | ast.ImportFrom,
    removed: Sequence[ast.alias],
    in_line: bool,
) -> list[Splice]:
    """Take some names out of an import, but not all.

    With `in_line`, the lines keep their numbers.
    """
    kept = [alias for alias in statement.names if alias not in removed]
    last = statement.names.index(kept[-1])
    splices = []
    for alias in removed:
        start, end = extent(unit, alias)
        # from flax import struct, optim: with the comma ahead of it
        if statement.names.index(alias) > last:
            ahead = unit.code[:start].rstrip()
            start = len(ahead.removesuffix(",").rstrip())
        # from flax import optim, struct: with the comma behind it
        else:
            start, end = _with_comma(unit.code, start, end, in_line)
        splices.append((start, end, ""))
    return splices


def _with_comma(code: str, start: int, end: int, in_line: bool) -> tuple[int, int]:
    """The extent of a name with the comma behind it, and with its line if it is alone there."""
    comma = re.compile(r"\s*,[ \t]*").match(code, end)
    end = comma.end() if comma else end
    line_start = code.rfind("\n", 0, start) + 1
    is_first = not code[line_start:start].strip()
    is_last = code[end : end + 1] in ("\n", "\r")
    if is_first and is_last and not in_line:
        return line_start, code.index("\n", end) + 1
    return start, end


def behind(
    unit: Unit,
    statement: ast.Import | ast.ImportFrom,
    new: Sequence[str],
    in_line: bool,
) -> Splice:
    """Put statements behind another one, on lines of their own.

    If that shares its line, or the lines keep their numbers, they get behind semicolons.
    """
    code = unit.code
    start, end = extent(unit, statement)
    newline_before = code.rfind("\n", 0, start)
    return_before = code.rfind("\r", 0, start)
    line_start = max(newline_before, return_before) + 1
    line_end = end
    while line_end < len(code) and code[line_end] not in "\r\n":
        line_end += 1
    indent = code[line_start:start]
    rest = code[end:line_end].strip()
    # if legacy: import flax
    is_behind_code = indent.strip() != ""
    # import flax; import jax
    is_before_code = rest != "" and not rest.startswith("#")
    if in_line or is_behind_code or is_before_code:
        in_one_line = "".join(f"; {text}" for text in new)
        return end, end, in_one_line
    # the lines end as this one does; the last line of a file may have no end
    ending = re.match(r"\r?\n|\r", code[line_end:])
    newline = ending[0] if ending else "\n"
    below = "".join(f"{newline}{indent}{text}" for text in new)
    return line_end, line_end, below
