"""How an element is added to a list, or a line between others, in the layout of the file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from optim2optax.dependencies.declared import (
    DeclaredRequirement,
    Insert,
    Span,
    TextEdit,
)

LINE_END = re.compile(r"\r\n|\n|\r")
REST = re.compile(r"(?P<comma>[ \t]*,)?[ \t]*(?:#[^\r\n]*)?(?P<end>\r\n|\n|\r)")


def line_end(text: str) -> str:
    """The line ending of a file, by its first line."""
    found = LINE_END.search(text)
    return found[0] if found else "\n"


def start_of_line(text: str, index: int) -> int:
    """The index at which the line of another index begins."""
    newline = text.rfind("\n", 0, index)
    carriage_return = text.rfind("\r", 0, index)
    return max(newline, carriage_return) + 1


def line_behind(text: str, index: int, line: str) -> TextEdit:
    """One more line, behind the line of an index."""
    found = LINE_END.search(text, index)
    if found is None:
        # the last line of the file has no line ending
        return TextEdit(len(text), len(text), f"{line_end(text)}{line}")
    return TextEdit(found.end(), found.end(), f"{line}{found[0]}")


def element_behind(
    text: str, elements: Sequence[Span], anchor: Span, element: str
) -> TextEdit:
    """One more element of a list in brackets, behind another one.

    It has a line of its own if the other one has.
    """
    start, end = anchor
    indent = text[start_of_line(text, start) : start]
    rest = REST.match(text, end)
    if indent.strip() or rest is None:
        # ["flax", "jax"] on one line
        return TextEdit(end, end, f", {element}")
    if rest["comma"] is not None:
        # "flax",  # the models
        return TextEdit(rest.end(), rest.end(), f"{indent}{element},{rest['end']}")
    if anchor != elements[-1]:
        # its comma stands further on, as at the beginning of the next line
        return TextEdit(end, end, f", {element}")
    # the last element has no comma yet, and perhaps a comment
    behind = rest.start("end")
    return TextEdit(end, behind, f",{text[end:behind]}{rest['end']}{indent}{element}")


def quoted_like(text: str, span: Span, requirement: str) -> str:
    """A requirement in the quotes of another one."""
    quote = text[span[0]]
    if quote in "'\"":
        return f"{quote}{requirement}{quote}"
    return requirement


def into_list(text: str, elements: Sequence[Span]) -> Insert:
    """A function that adds a requirement to a list in brackets with these elements."""

    def insert(anchor: DeclaredRequirement, name: str, version: str) -> TextEdit:
        element = quoted_like(text, anchor.span, f"{name}{version}")
        return element_behind(text, elements, anchor.span, element)

    return insert
