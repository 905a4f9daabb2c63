"""How an element is added to a list, or a line between others, in the layout of the file."""

from __future__ import annotations

import re

from codemods.sources.text import LINE_END
from optim2optax.dependencies.declared import Behind, Span

REST = re.compile(r"(?P<comma>[ \t]*,)?[ \t]*(?:#[^\r\n]*)?(?P<end>\r\n|\n|\r)")
INDENT = "    "


def start_of_line(text: str, index: int) -> int:
    """The index at which the line of another index begins."""
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def behind_line(text: str, start: int, end: int) -> Behind:
    """One more line behind that of `end`, with the indent of what begins at `start`."""
    before = text[start_of_line(text, start) : start]
    # install_requires = flax, on the line of its key
    indent = INDENT if before.strip() else before
    found = LINE_END.search(text, end)
    if found is not None:
        return Behind(found.end(), found.end(), indent, found[0])
    # the last line of the file has no line ending
    first = LINE_END.search(text)
    newline = first[0] if first else "\n"
    return Behind(len(text), len(text), f"{newline}{indent}")


def behind_element(text: str, span: Span, is_last: bool) -> Behind:
    """One more element of a list in brackets, in the quotes of the one with a span.

    It has a line of its own if that one has.
    """
    start, end = span
    quote = text[start]
    indent = text[start_of_line(text, start) : start]
    rest = REST.match(text, end)
    if rest is not None and not indent.strip():
        if rest["comma"] is not None:
            # "flax",  # the models
            suffix = f"{quote},{rest['end']}"
            return Behind(rest.end(), rest.end(), f"{indent}{quote}", suffix)
        if is_last:
            # it has no comma yet, and perhaps a comment
            behind = rest.start("end")
            prefix = f",{text[end:behind]}{rest['end']}{indent}{quote}"
            return Behind(end, behind, prefix, quote)
    # ["flax", "jax"], or a comma that stands at the beginning of the next line
    return Behind(end, end, f", {quote}", quote)
