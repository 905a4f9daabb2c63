"""Where nodes are, and the lines above statements: comments, and the gaps of what is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import libcst as cst
from libcst.metadata import CodeRange

from codemods.sources.modules import Span


def span_of(position: CodeRange) -> Span:
    start, end = position.start, position.end
    return start.line, start.column, end.line, end.column


def span_in_ast(node: cst.CSTNode, position: CodeRange) -> Span:
    """The span of a node as `ast` has it: only that of a tuple includes its parentheses."""
    span = span_of(position)
    if not (isinstance(node, cst.Tuple) and node.lpar):
        return span
    before = node.lpar[-1].whitespace_after
    after = node.rpar[0].whitespace_before
    # a tuple that begins or ends with a line end keeps the span of its elements
    if not isinstance(before, cst.SimpleWhitespace):
        return span
    if not isinstance(after, cst.SimpleWhitespace):
        return span
    first, start, last, end = span
    start -= len("(") + len(before.value)
    end += len(after.value) + len(")")
    return first, start, last, end


def remarks(texts: Iterable[str]) -> list[cst.EmptyLine]:
    """Lines of comments."""
    return [cst.EmptyLine(comment=cst.Comment(text)) for text in texts]


def with_lines(statement: cst.CSTNodeT, lines: Sequence[cst.EmptyLine]) -> cst.CSTNodeT:
    """A statement with more lines above."""
    if not lines:
        return statement
    above = getattr(statement, "leading_lines", ())
    return statement.with_changes(leading_lines=[*above, *lines])


def gap_and_comments(
    statement: cst.CSTNode,
) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """The blank lines above a statement, and the comments below these."""
    lines = list(getattr(statement, "leading_lines", ()))
    first = 0
    while first < len(lines) and lines[first].comment is None:
        first += 1
    return lines[:first], lines[first:]


def with_gap(statement: cst.CSTNodeT, gap: Sequence[cst.EmptyLine]) -> cst.CSTNodeT:
    """A statement with these blank lines above, unless it has some."""
    blank, own = gap_and_comments(statement)
    if blank or not gap:
        return statement
    return statement.with_changes(leading_lines=[*gap, *own])


def closed_up(
    body: Iterable[cst.CSTNodeT], is_gone: Callable[[cst.CSTNode], bool]
) -> list[cst.CSTNodeT]:
    """Statements without some, the blank lines above which are above the next one now."""
    kept: list[cst.CSTNodeT] = []
    gap: list[cst.EmptyLine] = []
    for node in body:
        if is_gone(node):
            gap = gap or gap_and_comments(node)[0]
        else:
            kept.append(with_gap(node, gap))
            gap = []
    return kept


def header_end(node: cst.CSTNode, positions: Mapping[cst.CSTNode, CodeRange]) -> int:
    """The last line of a compound statement's header."""
    body = positions.get(getattr(node, "body", node))
    first = positions[node].start.line
    if body is None:
        return first
    # if ready: step(), on one line
    return max(first, body.start.line - 1)
