"""Where emitted helper functions go in the user's file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice

import libcst as cst

from codemods.cst.comments import is_docstring
from codemods.rewriting.lines import gap_and_comments
from codemods.sources.notebook import MARKER as CELL

INDENT = " " * 4
"""The indentation in which helpers are written."""

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def insert_support(module: cst.Module, sources: Sequence[str]) -> cst.Module | None:
    """Put helper definitions after the imports that they need and ahead of their first use.

    In a file, that is behind all imports at its top; in a notebook, behind those that they need, as
    cells are run one by one. They get the file's indentation, and those that the file has already
    are left out. None if there is no such place.
    """
    new: list[cst.SimpleStatementLine | cst.BaseCompoundStatement] = []
    for source in sources:
        if not has_support(module, source):
            new += map(_spaced, _indented(source, module).body)
    if not new:
        return module
    index = _place(module, new)
    if index is None:
        return None
    following = module.body[index:]
    spaced = [_spaced(statement) for statement in following[:1]]
    ahead, behind = module.body[:index], following[1:]
    return module.with_changes(body=[*ahead, *new, *spaced, *behind])


def has_support(module: cst.Module, source: str) -> bool:
    """Whether the module holds these definitions already, to the letter."""
    wanted: dict[str, str] = {}
    for definition in _indented(source, module).body:
        wanted[_name(definition)] = _code(module, definition)
    present: set[str] = set()
    for statement in module.body:
        if _name(statement) in wanted:
            present.add(_code(module, statement))
    return present.issuperset(wanted.values())


def _name(statement: cst.CSTNode) -> str:
    """The name of a definition; nothing for other statements."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return statement.name.value
    return ""


def _code(
    module: cst.Module, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement
) -> str:
    return module.code_for_node(statement.with_changes(leading_lines=())).strip()


def _indented(source: str, module: cst.Module) -> cst.Module:
    """The source with the module's own indentation and line ends.

    What hangs in brackets stays four columns in.
    """
    return _parsed(source, module.default_indent, module.default_newline)


@cache
def _parsed(source: str, indent: str, newline: str) -> cst.Module:
    config = cst.PartialParserConfig(default_indent=INDENT, default_newline=newline)
    parsed = cst.parse_module(source, config).visit(_Docstrings(indent, newline))
    return parsed.with_changes(default_indent=indent)


class _Docstrings(cst.CSTTransformer):
    """Indents and ends the lines of docstrings, which are no code."""

    def __init__(self, indent: str, newline: str) -> None:
        super().__init__()
        self.indent = indent
        self.newline = newline

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        first, *rest = updated_node.value.split("\n")
        lines = [first]
        for line in rest:
            text = line.lstrip(" ")
            depth = (len(line) - len(text)) // len(INDENT)
            lines.append(self.indent * depth + text)
        return updated_node.with_changes(value=self.newline.join(lines))


def _place(module: cst.Module, new: Sequence[cst.BaseStatement]) -> int | None:
    """The index at which definitions go; None if they are needed ahead of what they need."""
    code = module.code
    statements = list(_in_ast(module, code))
    helpers = module.with_changes(body=new).code
    needed = _names(ast.parse(helpers), whole=True)
    # the line behind the first import of each name
    bound: dict[str, int] = {}
    for index, nodes in enumerate(statements):
        for name in _imported(nodes):
            bound.setdefault(name, index + 1)
    ends = [index for name, index in bound.items() if name in needed]
    first = max(ends, default=0)
    defined = {_name(statement) for statement in new}
    last = _first_use(statements, defined - {""})
    if first > last:
        return None
    is_notebook = CELL.match(code) is not None
    usual = _after_imports(module)
    if first and is_notebook:
        usual = _behind_imports(statements, first)
    return min(max(first, usual), last)


def _behind_imports(statements: Sequence[Sequence[ast.stmt]], first: int) -> int:
    """The first line from `first` on that does more than to import; `first` if there is none."""
    for index in range(first, len(statements)):
        nodes = statements[index]
        if not all(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
            return index
    return first


def _in_ast(module: cst.Module, code: str) -> Iterator[Sequence[ast.stmt]]:
    """The statements of each line of a module as `ast` has them."""
    nodes = iter(ast.parse(code).body)
    for line in module.body:
        # import jax; import optax
        size = len(line.body) if isinstance(line, cst.SimpleStatementLine) else 1
        yield list(islice(nodes, size))


def _first_use(statements: Sequence[Sequence[ast.stmt]], names: set[str]) -> int:
    """The first statement that may evaluate one of some names when the module is run.

    Definitions that use one of the names count as further names, until there are no more.
    """
    size = -1
    while size < len(names):
        size = len(names)
        for node in chain.from_iterable(statements):
            if not isinstance(node, DEFINITIONS):
                continue
            # def make(): return sgd(0.1), where `sgd` is a helper
            if not names.isdisjoint(_names(node, whole=True)):
                names.add(node.name)
    for index, nodes in enumerate(statements):
        for node in nodes:
            if not names.isdisjoint(_names(node, whole=False)):
                return index
    return len(statements)


def _names(root: ast.AST, whole: bool) -> set[str]:
    """The names in some code; unless `whole`, not those in the bodies of functions."""
    found: set[str] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        # the defaults and annotations of a function are evaluated when it is defined
        skipped: Sequence[ast.AST] = ()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not whole:
            skipped = node.body
        children = ast.iter_child_nodes(node)
        pending += [child for child in children if child not in skipped]
    return found


def _imported(nodes: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that imports bind in statements of a module, or in the branches of these."""
    pending: list[ast.AST] = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                # import jax.numpy binds `jax`
                yield alias.asname or alias.name.partition(".")[0]
        elif not isinstance(node, (*DEFINITIONS, ast.expr)):
            pending += ast.iter_child_nodes(node)


def _after_imports(module: cst.Module) -> int:
    """Behind the last import of the run at the top.

    Guarded imports and simple assignments may stand between them.
    """
    index = 0
    for number, statement in enumerate(module.body):
        inside: Sequence[cst.CSTNode] = (statement,)
        # try: import jax
        if isinstance(statement, cst.Try | cst.If):
            inside = statement.body.body
        has_import = any(map(_is_import, inside))
        if has_import or is_docstring(statement):
            index = number + 1
        elif not isinstance(statement, cst.SimpleStatementLine):
            break
    return index


def _is_import(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Import() | cst.ImportFrom(), *_]):
            return True
    return False


def _spaced(statement: cst.CSTNodeT) -> cst.CSTNodeT:
    """The statement with at least two blank lines above, its comments kept."""
    gap, comments = gap_and_comments(statement)
    blank = cst.EmptyLine(indent=False)
    missing = [blank] * (2 - len(gap))
    return statement.with_changes(leading_lines=[*missing, *gap, *comments])
