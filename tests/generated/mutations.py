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
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
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


HEADS = ("if True:", "for _ in range(1):", "with open('x'):", "while flag:", "try:")


def _deeper(lines: Lines) -> Lines:
    return [f"  {line}" if line.strip() else line for line in lines]


def _wrapped(draw: Draw, lines: Lines) -> Lines:
    head, indent = draw(st.sampled_from(HEADS)), _indent(lines[0])
    end = [f"{indent}finally:", f"{indent}  pass"] if head == "try:" else []
    return [f"{indent}{head}", *_deeper(lines), *end]


def _into_a_function(draw: Draw, lines: Lines) -> Lines:
    del draw
    indent = _indent(lines[0])
    return [f"{indent}def inner():", *_deeper(lines), f"{indent}inner()"]


def _exchanged(draw: Draw, code: str) -> str:
    """A name, attribute or keyword is another one of the same file."""
    nodes = [*ast.walk(ast.parse(code))]
    places = [node for node in nodes if isinstance(node, ast.Name)]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names = sorted({node.id for node in places} | attributes)
    if not places:
        return code
    node, name = draw(st.sampled_from(places)), draw(st.sampled_from(names))
    return _replaced(code, node, lambda _: name)


def _replaced(code: str, node: ast.expr, change: Callable[[str], str]) -> str:
    """A change of an expression within a line."""
    lines = code.split("\n")
    raw = lines[node.lineno - 1].encode()
    first, last = node.col_offset, node.end_col_offset
    new = change(raw[first:last].decode())
    lines[node.lineno - 1] = f"{raw[:first].decode()}{new}{raw[last:].decode()}"
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
    within = draw(st.sampled_from(("({})", "(\n{}\n)", "( # why\n{})")))
    return _replaced(code, node, within.format)


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
