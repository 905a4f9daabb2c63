"""New code from parsed snippets with holes: `expression("{owner}.params", owner=node)`."""

from __future__ import annotations

import re
from functools import cache

import libcst as cst

HOLE = re.compile(r"\{(\w+)\}")
DISPLAYS = (cst.List, cst.Set, cst.Dict, cst.ListComp, cst.SetComp, cst.DictComp)
LITERALS = (cst.BaseNumber, cst.SimpleString, cst.FormattedString)
ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, *LITERALS, *DISPLAYS)
"""Expressions that need no parentheses anywhere, if they stand on one line."""

SLICES = "slices"
"""The hole between brackets that takes over the slices of a subscript: `"{owner}[{slices}]"`."""

OPEN = (cst.GeneratorExp, cst.NamedExpr)
"""Expressions that need parentheses beside other arguments, behind `=`, or between brackets."""


def expression(
    template: str, **holes: cst.BaseExpression | cst.Arg
) -> cst.BaseExpression:
    """The expression that a template makes of its holes.

    A hole in an argument list may be a whole `cst.Arg`, which keeps its keyword, comma and
    comments. An expression that would fall apart where it is put (a lambda as a receiver) gets
    parentheses.
    """
    parsed = _parse_expression(HOLE.sub(r"__hole_\1__", template)).deep_clone()
    filled = parsed.visit(_Fill(holes))
    assert isinstance(filled, cst.BaseExpression)
    whole = _name_of(parsed)
    if whole is None:
        return filled
    # The template is nothing but a hole, "{value}" or "({value})".
    value = _value(holes[whole])
    if parsed.lpar and not value.lpar:
        return closed(value)
    return _whole(value)


def statement(
    template: str, **holes: cst.BaseExpression | cst.Arg
) -> cst.SimpleStatementLine:
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


def _whole(node: cst.BaseExpression) -> cst.BaseExpression:
    if node.lpar or _is_one_line(node):
        return node
    return closed(node)


class _Fill(cst.CSTTransformer):
    def __init__(self, holes: dict[str, cst.BaseExpression | cst.Arg]) -> None:
        super().__init__()
        self.holes = holes

    def leave_Name(
        self, original_node: cst.Name, updated_node: cst.Name
    ) -> cst.BaseExpression:
        name = _name_of(original_node)
        if name is None:
            return updated_node
        value = _value(self.holes[name])
        return closed(value.deep_clone())

    def leave_Index(
        self, original_node: cst.Index, updated_node: cst.Index
    ) -> cst.Index:
        name = _name_of(original_node.value)
        if name is None:
            return updated_node
        value = _value(self.holes[name]).deep_clone()
        return updated_node.with_changes(value=_closed_if_open(value))

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.Subscript:
        # "{owner}[{slices}]"
        match original_node.slice:
            case [cst.SubscriptElement(slice=cst.Index(value=value))] if (
                _name_of(value) == SLICES
            ):
                hole = _value(self.holes[SLICES])
                assert isinstance(hole, cst.Subscript)
                new = hole.deep_clone()
                return updated_node.with_changes(
                    slice=new.slice, lbracket=new.lbracket, rbracket=new.rbracket
                )
        return updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        name = _name_of(original_node.value)
        if name is None:
            return updated_node
        hole = self.holes[name]
        # "f({argument})", where the argument may be `rate=0.1`
        if isinstance(hole, cst.Arg):
            return hole.deep_clone()
        return updated_node.with_changes(value=_closed_if_open(hole.deep_clone()))


def _value(hole: cst.BaseExpression | cst.Arg) -> cst.BaseExpression:
    return hole.value if isinstance(hole, cst.Arg) else hole


def closed(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that holds together wherever it is put."""
    if node.lpar:
        return node
    if isinstance(node, ATOMS) and _is_one_line(node):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _closed_if_open(node: cst.BaseExpression) -> cst.BaseExpression:
    return closed(node) if isinstance(node, OPEN) else node


def _is_one_line(node: cst.BaseExpression) -> bool:
    """Whether an expression breaks lines at most within its own brackets."""
    code = cst.Module([]).code_for_node(node)
    if "\n" not in code:
        return True
    try:
        cst.parse_expression(code)
    except cst.ParserSyntaxError:
        return False
    return True
