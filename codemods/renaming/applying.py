"""Writes new names into a file: it is parsed again, and names are replaced at their places."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Mapping

from codemods.inference.scopes import Scopes
from codemods.renaming.new_names import (
    Attribute,
    Functions,
    Keyword,
    Renames,
    attribute_of,
    keyword_of,
    scope_path,
)
from codemods.sources.modules import Span, Unit


def renamed(path: str, code: str, renames: Renames) -> str | None:
    """A file with new names.

    None if a keyword or an attribute is not at its place any more: nothing may be renamed then.
    """
    unit = Unit(path, code, ast.parse(code))
    places = _Places(unit, renames)
    for node in unit.nodes:
        places.visit(node)
    places.spans |= _in_comments(unit, renames)
    return None if places.left else _spliced(code, places.spans)


class _Places:
    """Collects the new texts of spans; `left` are the keywords and attributes not found yet."""

    def __init__(self, unit: Unit, renames: Renames) -> None:
        self.unit = unit
        self.renames = renames
        self.left: set[Keyword | Attribute] = {*renames.keywords, *renames.attributes}
        self.spans: dict[Span, str] = {}
        self._scopes = Scopes(unit)

    def visit(self, node: ast.AST) -> None:
        match node:
            # optimizer = optimizer.apply_gradient(grads)
            case ast.Name(id=name):
                binding = self._scopes.around(node).binding(name)
                new = None if binding is None else self._new_name(binding.node, name)
                if new is not None:
                    self.spans[self.unit.span(node)] = new
            # def train_step(optimizer, batch)
            case ast.arg(arg=name):
                new = self._new_name(self._scopes.around(node).node, name)
                if new is not None:
                    self._rename_start(node, name, new)
            # train_step(optimizer=optimizer)
            case ast.Call(keywords=words):
                for word in words:
                    self._rename_keyword(node, word)
            # self.optimizer
            case ast.Attribute():
                self._rename_attribute(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                names = self._names_in(node)
                self.spans |= _in_docstring(node, self.unit, names)

    def _new_name(self, scope: ast.AST, name: str) -> str | None:
        if not isinstance(scope, Functions):
            return None
        return self._names_in(scope).get(name)

    def _names_in(self, function: Functions) -> Mapping[str, str]:
        """The new names of the variables of a function."""
        path = scope_path(function, self.unit)
        return self.renames.variables.get(path, {})

    def _rename_start(self, node: ast.arg | ast.keyword, name: str, new: str) -> None:
        """Rename the `optimizer` of `optimizer: Any` or `optimizer=x`."""
        first, column, _, _ = self.unit.span(node)
        end = column + len(name)
        self.spans[first, column, first, end] = new

    def _rename_keyword(self, call: ast.Call, word: ast.keyword) -> None:
        name = word.arg or ""
        keyword = keyword_of(call, self.unit, name)
        new = self.renames.keywords.get(keyword)
        self.left.discard(keyword)
        if new is not None:
            self._rename_start(word, name, new)

    def _rename_attribute(self, node: ast.Attribute) -> None:
        attribute = attribute_of(node, self.unit)
        self.left.discard(attribute)
        if attribute in self.renames.attributes:
            _, _, last, end = self.unit.span(node)
            span = (last, end - len(node.attr), last, end)
            self.spans[span] = self.renames.attributes[attribute]


def _in_docstring(
    node: Functions, unit: Unit, names: Mapping[str, str]
) -> dict[Span, str]:
    """The places of a docstring that name a parameter: as an entry, or in backquotes."""
    first = node.body[0]
    if not isinstance(first, ast.Expr):
        return {}
    docstring = first.value
    if not isinstance(docstring, ast.Constant) or not ast.get_docstring(node):
        return {}
    found: dict[Span, str] = {}
    start, _, end, _ = unit.span(docstring)
    lines = unit.code.split("\n")[start - 1 : end]
    for number, line in enumerate(lines, start):
        for name, new in names.items():
            # `optimizer:`, `optimizer (Optimizer):` or `:param optimizer:`
            entry = rf"(?:^\s+(?::param )?|`){re.escape(name)}(?=\s*(?:\([^)]*\))?:|`)"
            for match in re.finditer(entry, line):
                last = match.end()
                found[number, last - len(name), number, last] = new
    return found


def _in_comments(unit: Unit, renames: Renames) -> dict[Span, str]:
    """The places of comments that name a variable in backquotes."""
    named: list[tuple[Functions, Mapping[str, str]]] = []
    for function in unit.nodes:
        if not isinstance(function, Functions):
            continue
        new_names = renames.variables.get(scope_path(function, unit))
        if new_names:
            named.append((function, new_names))
    # most files have no new names, and tokens take long
    if not named:
        return {}
    found: dict[Span, str] = {}
    tokens = tokenize.generate_tokens(io.StringIO(unit.code).readline)
    for token in tokens:
        if token.type != tokenize.COMMENT:
            continue
        line, _ = token.start
        for node, names in named:
            if node.lineno <= line <= (node.end_lineno or 0):
                found |= _in_comment(token, names)
    return found


def _in_comment(token: tokenize.TokenInfo, names: Mapping[str, str]) -> dict[Span, str]:
    """The places of one comment that name a variable: `optimizer` in backquotes."""
    number, start = token.start
    found: dict[Span, str] = {}
    for name, new in names.items():
        quoted = rf"(?<=`){re.escape(name)}(?=`)"
        for match in re.finditer(quoted, token.string):
            first = start + match.start()
            last = start + match.end()
            found[number, first, number, last] = new
    return found


def _spliced(code: str, spans: Mapping[Span, str]) -> str:
    lines = code.split("\n")
    # from the right, so that the columns of those before stay
    from_right = sorted(spans.items(), reverse=True)
    for (number, start, _, end), new in from_right:
        line = lines[number - 1]
        lines[number - 1] = line[:start] + new + line[end:]
    return "\n".join(lines)
