"""How one more element is put into a list, or one more line between others, in the manner of what is there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from optim2optax.dependencies.declared import Declared, Edit, Insert, Span

LINE_END = re.compile(r"\r\n|\n|\r")
REST = re.compile(r"(?P<comma>[ \t]*,)?[ \t]*(?:#[^\r\n]*)?(?P<end>\r\n|\n|\r)")


def line_end(text: str) -> str:
    """What ends the lines of a file, by the first of them."""
    found = LINE_END.search(text)
    return found[0] if found else "\n"


def start_of_line(text: str, index: int) -> int:
    """Where the line begins that something stands in."""
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def line_behind(text: str, index: int, line: str) -> Edit:
    """One more line, behind that in which something ends."""
    found = LINE_END.search(text, index)
    if found is None:
        return Edit(len(text), len(text), f"{line_end(text)}{line}")
    return Edit(found.end(), found.end(), f"{line}{found[0]}")


def element_behind(text: str, elements: Sequence[Span], anchor: Span, element: str) -> Edit:
    """One more element of a list in brackets, behind another one: on a line of its own if that has one."""
    start, end = anchor
    line = start_of_line(text, start)
    indent = text[line:start]
    rest = REST.match(text, end)
    if indent.strip() or rest is None or (rest["comma"] is None and anchor != elements[-1]):
        return Edit(end, end, f", {element}")
    if rest["comma"] is None:
        behind = rest.start("end")
        return Edit(end, behind, f",{text[end:behind]}{rest['end']}{indent}{element}")
    return Edit(rest.end(), rest.end(), f"{indent}{element},{rest['end']}")


def quoted_like(text: str, span: Span, requirement: str) -> str:
    """A requirement in the quotes that another one has."""
    quote = text[span[0]]
    return f"{quote}{requirement}{quote}" if quote in "'\"" else requirement


def into_list(text: str, elements: Sequence[Span]) -> Insert:
    """What puts a requirement into a list in brackets, whose elements stand there."""

    def insert(anchor: Declared, name: str, version: str) -> Edit:
        element = quoted_like(text, anchor.span, f"{name}{version}")
        return element_behind(text, elements, anchor.span, element)

    return insert
