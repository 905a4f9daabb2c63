"""`setup.py`: literal lists, in the call of `setup` or under a name of the module."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping

from codemods.sources.text import LINE_END, Columns

from optim2optax.dependencies.declared import (
    Declared,
    Finding,
    Reading,
    Section,
    Span,
    UnreadableError,
    not_read,
)
from optim2optax.dependencies.placing import into_list
from optim2optax.dependencies.requirement import read_requirement

LISTS = ("install_requires", "tests_require", "setup_requires")
EXTRAS, PYTHON = "extras_require", "python_requires"
QUOTED = re.compile(r"""(['"])(?!\1\1)""")
PINNED = re.compile(r"(?i)(?:flax|jax|jaxlib|optax)\s*(?:\[[\w, -]+\]\s*)?(?:[<>=!~]=|[<>]|@).*")
List = ast.List | ast.Tuple


def read(text: str, path: str) -> Reading:
    """What a setup.py declares. What is computed is a problem where it speaks of a version. Raises UnreadableError."""
    del path
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = (error.lineno or 1) if isinstance(error, SyntaxError) else 1
        raise UnreadableError(f"cannot be parsed as Python: {error}", line) from error
    where = _Where(text)
    assigned = _assigned(module)
    sections: dict[ast.expr, Section] = {}
    problems: list[Finding] = []
    seen: set[ast.AST] = set()
    for keyword in _keywords(module):
        if keyword.arg == PYTHON and (span := where.string(_resolved(keyword.value, assigned))):
            node = _resolved(keyword.value, assigned)
            seen.add(node)
            start, end = span
            python = Declared("python", span, (start + 1, end - 1), text[start + 1 : end - 1])
            sections[node] = Section((python,))
        for found in _lists(keyword, assigned):
            if found not in sections:
                section, unread = _section(text, found, where, base=keyword.arg == LISTS[0])
                sections[found] = section
                problems += unread
            seen.update(node for element in found.elts for node in ast.walk(element))
    for other in ast.walk(module):
        if (
            isinstance(other, ast.Constant)
            and other not in seen
            and PINNED.fullmatch(str(other.value).strip())
        ):
            problems.append(
                not_read(where.span(other), "It is not in a list of `setup` that is written out.")
            )
    return Reading(tuple(sections.values()), tuple(problems))


class _Where:
    """Where nodes stand in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.columns = Columns(text)
        self.starts = [0, *(found.end() for found in LINE_END.finditer(text))]

    def span(self, node: ast.expr) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.starts[node.lineno - 1] + self.columns.character(node.lineno, node.col_offset)
        end = self.starts[node.end_lineno - 1] + self.columns.character(
            node.end_lineno, node.end_col_offset
        )
        return start, end

    def string(self, node: ast.expr) -> Span | None:
        """Where a string stands that is written in one piece, without a prefix."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            return None
        start, end = self.span(node)
        quote = QUOTED.match(self.text, start)
        is_one = quote is not None and self.text.find(quote[1], start + 1) == end - 1
        return (start, end) if is_one else None


def _keywords(module: ast.Module) -> Iterator[ast.keyword]:
    """The arguments of `setup(…)`, by name."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setup":
            yield from node.keywords


def _assigned(module: ast.Module) -> Mapping[str, ast.expr]:
    """What names of the module stand for that are bound once, and never changed by an operator."""
    found: dict[str, ast.expr] = {}
    often: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            often.update({node.id} & found.keys())
            found.setdefault(node.id, node)
    for node in module.body:
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        ):
            found[node.targets[0].id] = node.value
    return {name: value for name, value in found.items() if name not in often}


def _resolved(node: ast.expr, assigned: Mapping[str, ast.expr]) -> ast.expr:
    return assigned.get(node.id, node) if isinstance(node, ast.Name) else node


def _lists(keyword: ast.keyword, assigned: Mapping[str, ast.expr]) -> Iterator[List]:
    if keyword.arg in LISTS:
        yield from _parts(keyword.value, assigned)
    elif keyword.arg == EXTRAS and isinstance(
        extras := _resolved(keyword.value, assigned), ast.Dict
    ):
        for value in extras.values:
            yield from _parts(value, assigned)


def _parts(node: ast.expr, assigned: Mapping[str, ast.expr]) -> Iterator[List]:
    """The literal lists that a list is, or is the sum of."""
    node = _resolved(node, assigned)
    if isinstance(node, (ast.List, ast.Tuple)):
        yield node
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _parts(node.left, assigned)
        yield from _parts(node.right, assigned)


def _section(text: str, node: List, where: _Where, *, base: bool) -> tuple[Section, list[Finding]]:
    declared: list[Declared] = []
    problems: list[Finding] = []
    for element in node.elts:
        span = where.string(element)
        if span is None:
            whole = where.span(element)
            if PINNED.search(text[slice(*whole)]):
                problems.append(not_read(whole, "It is not written out in one piece."))
            continue
        found = read_requirement(text[span[0] + 1 : span[1] - 1], span[0] + 1, quotes=1)
        if isinstance(found, Finding):
            problems.append(found)
        elif found is not None:
            declared.append(found)
    return Section(
        tuple(declared), into_list(text, [where.span(one) for one in node.elts]), base
    ), problems
