"""How an element is added to a list, or a line between others, in the layout of the file."""

from __future__ import annotations

import re

from codemods.sources.text import LINE_END
from optim2optax.dependencies.declared import Span, TextEdit

INDENT = "    "
REST = re.compile(r"(?P<comma>[ \t]*,)?[ \t]*(?:#[^\r\n]*)?(?P<end>\r\n|\n|\r)")


def start_of_line(text: str, index: int) -> int:
    """The index at which the line of another index begins."""
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def line_behind(text: str, start: int, end: int, name: str, version: str) -> TextEdit:
    """One more line behind that of `end`, with the indent of what begins at `start`."""
    before = text[start_of_line(text, start) : start]
    # install_requires = flax, on the line of its key
    indent = INDENT if before.strip() else before
    line = f"{indent}{name}{version}"
    found = LINE_END.search(text, end)
    if found is not None:
        return TextEdit(found.end(), found.end(), f"{line}{found[0]}")
    # the last line of the file has no line ending
    first = LINE_END.search(text)
    return TextEdit(len(text), len(text), f"{first[0] if first else chr(10)}{line}")


def element_behind(
    text: str, span: Span, is_last: bool, name: str, version: str
) -> TextEdit:
    """One more element of a list in brackets, in the quotes of the one before it.

    It has a line of its own if that one has.
    """
    start, end = span
    element = f"{text[start]}{name}{version}{text[start]}"
    indent = text[start_of_line(text, start) : start]
    rest = REST.match(text, end)
    if rest is not None and not indent.strip():
        if rest["comma"] is not None:
            # "flax",  # the models
            line = f"{indent}{element},{rest['end']}"
            return TextEdit(rest.end(), rest.end(), line)
        if is_last:
            # it has no comma yet, and perhaps a comment
            behind = rest.start("end")
            line = f",{text[end:behind]}{rest['end']}{indent}{element}"
            return TextEdit(end, behind, line)
    # ["flax", "jax"], or a comma that stands at the beginning of the next line
    return TextEdit(end, end, f", {element}")
