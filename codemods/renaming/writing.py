"""The new names in place: a file is read again, and its names are exchanged where they stand."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Mapping

from codemods.dataflow.bindings import Scopes
from codemods.renaming.names import Attribute, Functions, Keyword, Renames, keyword_of, scope_path
from codemods.sources.modules import Span, Unit


def renamed(path: str, code: str, renames: Renames) -> str | None:
    """A file with new names; None if a keyword or an attribute is not where it was, so that nothing may be renamed."""
    left: set[Keyword | Attribute] = {*renames.keywords, *renames.attributes}
    unit = Unit(path, code, ast.parse(code))
    spans: dict[Span, str] = {}
    scopes = Scopes(unit)
    for node in unit.nodes:
        match node:
            case ast.Name(id=name):
                binding = scopes.around(node).binding(name)
                new = _new_name(binding.node, name, unit, renames) if binding is not None else None
                if new is not None:
                    spans[unit.span(node)] = new
            case ast.arg(arg=name):
                new = _new_name(scopes.around(node).node, name, unit, renames)
                if new is not None:
                    first, column, _, _ = unit.span(node)
                    spans[first, column, first, column + len(name)] = new
            case ast.Call(keywords=words):
                for word in words:
                    keyword = keyword_of(node, unit, word.arg or "")
                    new = renames.keywords.get(keyword)
                    left.discard(keyword)
                    if new is not None:
                        first, column, _, _ = unit.span(word)
                        spans[first, column, first, column + len(word.arg or "")] = new
            case ast.Attribute(attr=name):
                attribute = Attribute(scope_path(node, unit), ast.unparse(node))
                left.discard(attribute)
                if attribute in renames.attributes:
                    _, _, last, end = unit.span(node)
                    spans[last, end - len(name), last, end] = renames.attributes[attribute]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                spans |= _in_docstring(
                    node, unit, renames.variables.get(scope_path(node, unit), {})
                )
    spans |= _in_comments(unit, renames)
    return None if left else _spliced(code, spans)


def _new_name(scope: ast.AST, name: str, unit: Unit, renames: Renames) -> str | None:
    if not isinstance(scope, Functions):
        return None
    return renames.variables.get(scope_path(scope, unit), {}).get(name)


def _in_docstring(node: Functions, unit: Unit, names: Mapping[str, str]) -> dict[Span, str]:
    """The places of a docstring that name a parameter: at the beginning of an entry, or in backquotes."""
    first = node.body[0]
    if not (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and ast.get_docstring(node)
    ):
        return {}
    found: dict[Span, str] = {}
    start, _, end, _ = unit.span(first.value)
    for number, line in enumerate(unit.code.split("\n")[start - 1 : end], start):
        for name, new in names.items():
            for match in re.finditer(
                rf"(?:^\s+(?::param )?|`){re.escape(name)}(?=\s*(?:\([^)]*\))?:|`)", line
            ):
                found[number, match.end() - len(name), number, match.end()] = new
    return found


def _in_comments(unit: Unit, renames: Renames) -> dict[Span, str]:
    """The places of comments that name a variable in backquotes."""
    functions = (node for node in unit.nodes if isinstance(node, Functions))
    known = ((node, renames.variables.get(scope_path(node, unit))) for node in functions)
    named = [(node, names) for node, names in known if names]
    found: dict[Span, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(unit.code).readline) if named else ():
        if token.type == tokenize.COMMENT:
            number, start = token.start
            for node, names in named:
                for name, new in (
                    names.items() if node.lineno <= number <= (node.end_lineno or 0) else ()
                ):
                    for match in re.finditer(rf"(?<=`){re.escape(name)}(?=`)", token.string):
                        found[number, start + match.start(), number, start + match.end()] = new
    return found


def _spliced(code: str, spans: Mapping[Span, str]) -> str:
    lines = code.split("\n")
    for (number, start, _, end), new in sorted(spans.items(), reverse=True):
        lines[number - 1] = lines[number - 1][:start] + new + lines[number - 1][end:]
    return "\n".join(lines)
