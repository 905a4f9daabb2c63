"""Where emitted helper functions go in the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import libcst as cst

INDENT = " " * 4
"""The indentation in which helpers are written."""


def insert_support(module: cst.Module, sources: Sequence[str]) -> cst.Module:
    """Put helper definitions after the imports at the module's top, once, in the file's indentation."""
    new = [
        _spaced(item, 2)
        for source in sources
        if not has_support(module, source)
        for item in _indented(source, module).body
    ]
    if not new:
        return module
    index = _after_imports(module)
    following = module.body[index:]
    spaced = [_spaced(statement, 2) for statement in following[:1]]
    return module.with_changes(body=[*module.body[:index], *new, *spaced, *following[1:]])


def has_support(module: cst.Module, source: str) -> bool:
    """Whether the module holds these definitions already, to the letter."""
    wanted = {_name(statement): _code(module, statement) for statement in _indented(source, module).body}
    present = {_code(module, statement) for statement in module.body if _name(statement) in wanted}
    return present.issuperset(wanted.values())


def _name(statement: cst.CSTNode) -> str:
    """The name of a definition; nothing for other statements."""
    return statement.name.value if isinstance(statement, cst.FunctionDef | cst.ClassDef) else ""


def _code(module: cst.Module, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement) -> str:
    return module.code_for_node(_bare(statement)).strip()


def _indented(source: str, module: cst.Module) -> cst.Module:
    """The source with the module's own indentation and line ends; what hangs in brackets stays four columns in."""
    return _parsed(source, module.default_indent, module.default_newline)


@cache
def _parsed(source: str, indent: str, newline: str) -> cst.Module:
    config = cst.PartialParserConfig(default_indent=INDENT, default_newline=newline)
    parsed = cst.parse_module(source, config).visit(_Docstrings(indent))
    return parsed.with_changes(default_indent=indent)


class _Docstrings(cst.CSTTransformer):
    """Indents the lines of docstrings, which are no code."""

    def __init__(self, indent: str) -> None:
        super().__init__()
        self.indent = indent

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        first, *rest = updated_node.value.split("\n")
        deeper = [self.indent * _depth(line) + line.lstrip(" ") for line in rest]
        return updated_node.with_changes(value="\n".join([first, *deeper]))


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip(" "))) // len(INDENT)


def _after_imports(module: cst.Module) -> int:
    """Behind the last import of the run at the top; guarded imports and simple assignments may stand between them."""
    index = 0
    for number, statement in enumerate(module.body):
        if isinstance(statement, cst.SimpleStatementLine) and isinstance(
            statement.body[0], cst.Import | cst.ImportFrom
        ):
            index = number + 1
        elif _is_docstring(statement):
            index = max(index, number + 1)
        elif isinstance(statement, cst.Try | cst.If) and _imports_only(statement.body):
            index = number + 1
        elif not isinstance(statement, cst.SimpleStatementLine):
            break
    return index


def _imports_only(body: cst.BaseSuite) -> bool:
    return any(
        isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import | cst.ImportFrom)
        for statement in body.body
    )


def _is_docstring(statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, cst.SimpleString | cst.ConcatenatedString)
    )


def _bare(statement: cst.CSTNode) -> cst.CSTNode:
    return statement.with_changes(leading_lines=()) if hasattr(statement, "leading_lines") else statement


def _spaced(statement: cst.CSTNodeT, blank: int) -> cst.CSTNodeT:
    """The statement with at least so many blank lines above, its comments kept."""
    leading = list(getattr(statement, "leading_lines", ()))
    first = next((i for i, line in enumerate(leading) if line.comment is not None), len(leading))
    missing = max(0, blank - first)
    return statement.with_changes(leading_lines=[*[cst.EmptyLine(indent=False)] * missing, *leading])
