"""What still refers to `flax.optim` in files whose imports are pointed at a copy of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.analysis.reflection import PATH, looks_up_module
from codemods.sources.modules import Span, Unit
from codemods.vocabulary import PACKAGE


def unpointed(units: Iterable[Unit]) -> dict[Unit, list[tuple[Span, str]]]:
    """The expressions that are of `flax.optim` or build its name, with their text, by file."""
    units = list(units)
    try:
        facts = Facts(units)
    except RecursionError:
        facts = Facts(())
    found: dict[Unit, list[tuple[Span, str]]] = {}
    for unit in units:
        expressions = (node for node in unit.nodes if isinstance(node, ast.expr))
        left = [node for node in expressions if _gets_at(node, facts)]
        found[unit] = [(unit.span(node), unit.source(node)) for node in left]
    return found


def _gets_at(node: ast.expr, facts: Facts) -> bool:
    """Whether an expression is of the package, and none of its parts is.

    Variables, and their attributes, do not count.
    """
    match node:
        # Adam, behind `from flax.optim import Adam`
        case ast.Name():
            return _is_legacy(node, facts) and facts.names_legacy(node)
        # {"class": "flax.optim.Adam"}
        case ast.Constant(value=str(text)):
            return PATH.fullmatch(text) is not None
        # f"flax.optim.{name}"
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.startswith(f"{PACKAGE}.")
    if looks_up_module(facts, node):
        return True
    if not _is_legacy(node, facts):
        return False
    # optim.Adam(rate).create(params): only the innermost part is listed
    for part in ast.walk(node):
        if part is node or not isinstance(part, ast.expr):
            continue
        if _is_legacy(part, facts):
            return False
    return True


def _is_legacy(node: ast.expr, facts: Facts) -> bool:
    names = facts.externals(node)
    return any(legacy_name(name) is not None for name in names)
