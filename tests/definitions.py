"""Programs in which a person has changed some functions."""

from __future__ import annotations

import ast


def with_definitions(program: str, definitions: str) -> str:
    """A program in which some functions and variables are others. What is new stands ahead of the next that is not.

    Definitions with imports are a whole program.
    """
    if definitions.startswith(("import", "from")):
        return definitions
    places = {name: node for node in ast.parse(program).body for name in _names(node)}
    lines, edits, new = program.splitlines(keepends=True), [], ""
    for node in ast.parse(definitions).body:
        new += "".join(
            definitions.splitlines(keepends=True)[_first(node) : node.end_lineno]
        )
        if old := next((places[name] for name in _names(node) if name in places), None):
            edits.append((_first(old), old.end_lineno, new))
            new = ""
    assert not new, "nothing of the program is another"
    for start, end, text in sorted(edits, reverse=True):
        lines[start:end] = [text]
    return "".join(lines)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets]
    return [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []


def _first(node: ast.stmt) -> int:
    """The index of its first line, that of a decorator if it has one."""
    decorators = (
        node.decorator_list if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
    )
    return min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
