"""The quotation marks of a file."""

from __future__ import annotations

from typing import TypeVar

import libcst as cst

ExpressionT = TypeVar("ExpressionT", bound=cst.BaseExpression)


def usual_quote(code: str) -> str:
    """The quotation mark that a file has most of."""
    # Docstrings have theirs in any style.
    plain = code.replace('"""', "").replace("'''", "")
    if plain.count('"') >= plain.count("'"):
        return '"'
    return "'"


def quoted_as(node: ExpressionT, quote: str) -> ExpressionT:
    """An expression whose texts have the quotation marks of the file."""
    updated = node.visit(_Exchange("'" if quote == '"' else '"', quote))
    return updated if isinstance(updated, type(node)) else node


def within_quotes(
    string: cst.FormattedString, before: cst.FormattedString
) -> cst.FormattedString:
    """An f-string whose new texts have other quotation marks than itself.

    Its own would end it, before Python 3.12; where it had some `before`, it is for a later one.
    """
    other = "'" if string.quote == '"' else '"'
    exchange = _Exchange(string.quote, other)
    had_some = not before.deep_equals(_exchanged(before, exchange))
    return string if had_some else _exchanged(string, exchange)


def _exchanged(string: cst.FormattedString, exchange: _Exchange) -> cst.FormattedString:
    return cst.ensure_type(string.visit(exchange), cst.FormattedString)


class _Exchange(cst.CSTTransformer):
    def __init__(self, quote: str, other: str) -> None:
        super().__init__()
        self.quote = quote
        self.other = other

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        text = original_node.raw_value
        if original_node.quote != self.quote or self.other in text:
            return updated_node
        value = f"{original_node.prefix}{self.other}{text}{self.other}"
        return updated_node.with_changes(value=value)
