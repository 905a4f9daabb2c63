"""How an element is added to a list, or a line between others, in the layout of the file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codemods.sources.text import LINE_END
from optim2optax.dependencies.declared import (
    DeclaredRequirement,
    Insert,
    Span,
    TextEdit,
)

REST = re.compile(r"(?P<comma>[ \t]*,)?[ \t]*(?:#[^\r\n]*)?(?P<end>\r\n|\n|\r)")


def start_of_line(text: str, index: int) -> int:
    """The index at which the line of another index begins."""
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def line_behind(text: str, index: int, line: str) -> TextEdit:
    """One more line, behind the line of an index."""
    found = LINE_END.search(text, index)
    if found is not None:
        return TextEdit(found.end(), found.end(), f"{line}{found[0]}")
    # the last line of the file has no line ending
    first = LINE_END.search(text)
    return TextEdit(len(text), len(text), f"{first[0] if first else chr(10)}{line}")


def quoted_like(text: str, span: Span, requirement: str) -> str:
    """A requirement in the quotes of another one."""
    return f"{text[span[0]]}{requirement}{text[span[0]]}"


def into_list(text: str, elements: Sequence[Span]) -> Insert:
    """A function that adds a requirement to a list in brackets with these elements.

    It has a line of its own if the one before it has.
    """

    def insert(anchor: DeclaredRequirement, name: str, version: str) -> TextEdit:
        start, end = anchor.span
        element = quoted_like(text, anchor.span, f"{name}{version}")
        indent = text[start_of_line(text, start) : start]
        rest = REST.match(text, end)
        if rest is not None and not indent.strip():
            if rest["comma"] is not None:
                # "flax",  # the models
                line = f"{indent}{element},{rest['end']}"
                return TextEdit(rest.end(), rest.end(), line)
            if anchor.span == elements[-1]:
                # it has no comma yet, and perhaps a comment
                behind = rest.start("end")
                line = f",{text[end:behind]}{rest['end']}{indent}{element}"
                return TextEdit(end, behind, line)
        # ["flax", "jax"], or a comma that stands at the beginning of the next line
        return TextEdit(end, end, f", {element}")

    return insert
