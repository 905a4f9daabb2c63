"""Comments and docstrings of LibCST nodes."""

from __future__ import annotations

import libcst as cst


def comments_within(node: cst.CSTNode | cst.MaybeSentinel) -> list[str]:
    """The comments of a statement, those above it included, or of white space."""
    visitor = _Comments()
    if isinstance(node, cst.CSTNode):
        node.visit(visitor)
    return visitor.found


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def visit_Comment(self, node: cst.Comment) -> None:
        self.found.append(node.value)


def is_docstring(statement: cst.CSTNode) -> bool:
    """Whether a statement is nothing but a text."""
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()), *_]
        ):
            return True
    return False
