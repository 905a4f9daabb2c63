"""New code from parsed snippets with holes: `expression("{owner}.params", owner=node)`."""

from __future__ import annotations

import re
from functools import cache

import libcst as cst

HOLE = re.compile(r"\{(\w+)\}")
ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BaseNumber,
    cst.BaseString,
    cst.List,
    cst.Set,
    cst.Dict,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
)


def expression(template: str, **holes: cst.BaseExpression | cst.Arg) -> cst.BaseExpression:
    """The expression that a template makes of its holes.

    A hole in an argument list may be a whole `cst.Arg`, which keeps its keyword, comma and comments. An expression that would
    fall apart where it is put (a lambda as a receiver) gets parentheses.
    """
    parsed = _parse_expression(HOLE.sub(r"__hole_\1__", template)).deep_clone()
    filled = parsed.visit(_Fill(holes))
    assert isinstance(filled, cst.BaseExpression)
    return _bare(parsed, filled, holes)


def statement(template: str, **holes: cst.BaseExpression | cst.Arg) -> cst.SimpleStatementLine:
    """The one-line statement that a template makes of its holes."""
    parsed = cst.parse_statement(HOLE.sub(r"__hole_\1__", template))
    filled = parsed.visit(_Fill(holes))
    assert isinstance(filled, cst.SimpleStatementLine)
    return filled


_parse_expression = cache(cst.parse_expression)


def _name_of(node: cst.CSTNode) -> str | None:
    if isinstance(node, cst.Name) and node.value.startswith("__hole_"):
        return node.value.removeprefix("__hole_").removesuffix("__")
    return None


def _bare(
    original: cst.CSTNode, filled: cst.BaseExpression, holes: dict[str, cst.BaseExpression | cst.Arg]
) -> cst.BaseExpression:
    name = _name_of(original)
    hole = holes[name] if name else filled
    return hole if isinstance(hole, cst.BaseExpression) else filled


def _parenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    if (isinstance(node, ATOMS) and not isinstance(node, cst.ConcatenatedString)) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


class _Fill(cst.CSTTransformer):
    def __init__(self, holes: dict[str, cst.BaseExpression | cst.Arg]) -> None:
        super().__init__()
        self.holes = holes

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        name = _name_of(original_node)
        hole = self.holes[name] if name else updated_node
        value = hole.value if isinstance(hole, cst.Arg) else hole
        return _parenthesized(value.deep_clone()) if name else updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        name = _name_of(original_node.value)
        if name is None:
            return updated_node
        hole = self.holes[name]
        if isinstance(hole, cst.Arg):
            return hole.deep_clone()
        return updated_node.with_changes(value=hole.deep_clone())
