"""Files at random: a given one, of which some statements are gone, doubled, exchanged or wrapped, and some names are others."""

import ast
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

Draw = st.DrawFn
Lines = list[str]


@st.composite
def mutations(draw: Draw, sources: Sequence[str]) -> bytes:
    """A file that parses, which one to four changes have made of one of the sources."""
    code = draw(st.sampled_from(sources))
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4)):
        changed = change(draw, code)
        if parses(changed):
            code = changed
    newline = draw(st.sampled_from(("\n", "\n", "\n", "\r\n")))
    return code.replace("\n", newline).encode()


def parses(code: str) -> bool:
    """Whether this Python can read a file."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


def _statement(draw: Draw, code: str) -> ast.stmt | None:
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    return draw(st.sampled_from(found)) if found else None


def _lines(node: ast.stmt) -> slice:
    first = min(
        [node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]
    )
    return slice(first - 1, node.end_lineno)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _with(change: Callable[[Draw, Lines], Lines]) -> Callable[[Draw, str], str]:
    """A change of the lines of one statement."""

    def changed(draw: Draw, code: str) -> str:
        node, lines = _statement(draw, code), code.split("\n")
        if node is None:
            return code
        place = _lines(node)
        lines[place] = change(draw, lines[place])
        return "\n".join(lines)

    return changed


def _wrapped(draw: Draw, lines: Lines) -> Lines:
    head = draw(
        st.sampled_from(
            ("if True:", "for _ in range(1):", "with open('x'):", "while flag:", "try:")
        )
    )
    end = (
        [f"{_indent(lines[0])}finally:", f"{_indent(lines[0])}  pass"]
        if head == "try:"
        else []
    )
    return [
        f"{_indent(lines[0])}{head}",
        *(f"  {line}" if line.strip() else line for line in lines),
        *end,
    ]


def _into_a_function(draw: Draw, lines: Lines) -> Lines:
    del draw
    indent = _indent(lines[0])
    return [
        f"{indent}def inner():",
        *(f"  {line}" if line.strip() else line for line in lines),
        f"{indent}inner()",
    ]


def _exchanged(draw: Draw, code: str) -> str:
    """A name, attribute or keyword is another one of the same file."""
    names = sorted(
        {
            *(
                node.id
                for node in ast.walk(ast.parse(code))
                if isinstance(node, ast.Name)
            ),
            *(
                node.attr
                for node in ast.walk(ast.parse(code))
                if isinstance(node, ast.Attribute)
            ),
        }
    )
    places = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    if not places:
        return code
    node, name = draw(st.sampled_from(places)), draw(st.sampled_from(names))
    lines = code.split("\n")
    raw = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (
        raw[: node.col_offset] + name.encode() + raw[node.end_col_offset :]
    ).decode()
    return "\n".join(lines)


def _in_parentheses(draw: Draw, code: str) -> str:
    """An expression has parentheses more than it needs, and perhaps a line of its own."""
    found = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call | ast.Attribute | ast.Name)
        and node.lineno == node.end_lineno
    ]
    if not found:
        return code
    node = draw(st.sampled_from(found))
    opening, closing = draw(
        st.sampled_from((("(", ")"), ("(\n", "\n)"), ("( # why\n", ")")))
    )
    lines = code.split("\n")
    raw = lines[node.lineno - 1].encode()
    first, last = node.col_offset, node.end_col_offset or 0
    lines[node.lineno - 1] = (
        raw[:first] + opening.encode() + raw[first:last] + closing.encode() + raw[last:]
    ).decode()
    return "\n".join(lines)


CHANGES: tuple[Callable[[Draw, str], str], ...] = (
    _with(lambda *_: []),
    _with(lambda _, lines: [f"{_indent(lines[0])}pass"]),
    _with(lambda _, lines: [*lines, *lines]),
    _with(lambda _, lines: [*lines[:-1], f"{lines[-1]}  # optimizer.target"]),
    _with(lambda _, lines: [*lines[:-1], f"{lines[-1]};"]),
    _with(lambda _, lines: ["", *lines, ""]),
    _with(_wrapped),
    _with(_into_a_function),
    _exchanged,
    _exchanged,
    _in_parentheses,
    _in_parentheses,
)
