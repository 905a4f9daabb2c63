"""`setup.py`: literal lists, in the call of `setup` or under a name of the module."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from codemods.sources.text import Columns
from optim2optax.dependencies.declared import (
    Declarations,
    DeclaredRequirement,
    Finding,
    FormatError,
    Read,
    Section,
    Span,
    not_read,
)
from optim2optax.dependencies.lists import element_behind
from optim2optax.dependencies.requirement import read_requirement

LISTS = ("install_requires", "tests_require", "setup_requires")
EXTRAS, PYTHON = "extras_require", "python_requires"
QUOTED = re.compile(r"""(['"])(?!\1\1)""")
PINNED = re.compile(
    r"(?i)(?:flax|jax|jaxlib|optax)\s*(?:\[[\w, -]+\]\s*)?(?:[<>=!~]=|[<>]|@).*"
)
List = ast.List | ast.Tuple


def read(text: str, path: str) -> Declarations:
    """What a setup.py declares. A computed version is a problem. Raises FormatError."""
    del path
    module = _parsed(text)
    columns = Columns(text)
    assigned = _assigned(module)
    sections: dict[ast.expr, Section] = {}
    others: list[Finding] = []
    seen: set[ast.AST] = set()
    for keyword in _keywords(module):
        if keyword.arg == PYTHON:
            node = _resolved(keyword.value, assigned)
            found = _string(text, node, columns)
            if found:
                seen.add(node)
                inner = (found[0] + 1, found[1] - 1)
                spec = text[slice(*inner)]
                python = DeclaredRequirement("python", found, inner, spec)
                sections[node] = Section((python,))
        for node in _lists(keyword, assigned):
            # two arguments may share a list: tests_require=requires
            if node not in sections:
                is_base = keyword.arg == LISTS[0]
                sections[node] = _section(text, node, columns, is_base)
            for element in node.elts:
                seen.update(ast.walk(element))
    for other in ast.walk(module):
        # "jax==0.2.1" in a list that is built otherwise
        if not isinstance(other, ast.Constant) or other in seen:
            continue
        if PINNED.fullmatch(str(other.value).strip()):
            why = "It is not in a list of `setup` that is written out."
            others.append(not_read(_span(other, columns), why))
    return Declarations(tuple(sections.values()), tuple(others))


def _parsed(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # invalid escapes in the strings of others
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = (error.lineno or 1) if isinstance(error, SyntaxError) else 1
        raise FormatError(f"cannot be parsed as Python: {error}", line) from error


def _span(node: ast.expr, columns: Columns) -> Span:
    start = columns.offset(node.lineno, node.col_offset)
    return start, columns.offset(node.end_lineno, node.end_col_offset)


def _string(text: str, node: ast.expr, columns: Columns) -> Span | None:
    """Where a string stands that is written in one piece, without a prefix."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    start, end = _span(node, columns)
    quote = QUOTED.match(text, start)
    # "jax" ">=0.2" is a string in two pieces, whose first ends before it
    if quote is None or text.find(quote[1], start + 1) != end - 1:
        return None
    return start, end


def _keywords(module: ast.Module) -> Iterator[ast.keyword]:
    """The arguments of `setup(…)` and `setuptools.setup(…)`, by name."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func).rpartition(".")[2] == "setup":
            yield from node.keywords


def _assigned(module: ast.Module) -> Mapping[str, ast.expr]:
    """The values of the module's names that are bound once, augmented assignments included."""
    names = [
        node.id
        for node in ast.walk(module)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    found: dict[str, ast.expr] = {}
    for node in module.body:
        match node:
            # requires = ["flax==0.3.4"]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if names.count(name) == 1:
                    found[name] = value
    return found


def _resolved(node: ast.expr, assigned: Mapping[str, ast.expr]) -> ast.expr:
    """The value of a name that is bound once; any other expression as it is."""
    if isinstance(node, ast.Name):
        return assigned.get(node.id, node)
    return node


def _lists(keyword: ast.keyword, assigned: Mapping[str, ast.expr]) -> Iterator[List]:
    """The lists of requirements in an argument of `setup`."""
    if keyword.arg in LISTS:
        # install_requires=["flax==0.3.4"]
        yield from _parts(keyword.value, assigned)
    elif keyword.arg == EXTRAS:
        # extras_require={"gpu": ["jax[cuda]"]}
        extras = _resolved(keyword.value, assigned)
        if isinstance(extras, ast.Dict):
            for value in extras.values:
                yield from _parts(value, assigned)


def _parts(node: ast.expr, assigned: Mapping[str, ast.expr]) -> Iterator[List]:
    """The literal lists that a list is, or is the sum of."""
    node = _resolved(node, assigned)
    if isinstance(node, (ast.List, ast.Tuple)):
        yield node
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        # install_requires=BASE + ["flax==0.3.4"]
        yield from _parts(node.left, assigned)
        yield from _parts(node.right, assigned)


def _section(text: str, node: List, columns: Columns, base: bool) -> Section:
    """The requirements of a literal list."""
    read: list[Read] = []
    for element in node.elts:
        span = _string(text, element, columns)
        if span is None:
            # f"jax=={VERSION}"
            whole = _span(element, columns)
            if PINNED.search(text[slice(*whole)]):
                why = "This requirement is not written out in one piece."
                read.append(not_read(whole, why))
            continue
        start, end = span
        found = read_requirement(text[start + 1 : end - 1], start + 1, quotes=1)
        if isinstance(found, DeclaredRequirement):
            is_last = element is node.elts[-1]
            found = replace(found, behind=partial(element_behind, text, span, is_last))
        if found is not None:
            read.append(found)
    return Section(tuple(read), base)
