"""What still speaks of `flax.optim` in files whose imports are pointed at a copy of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.facts import Facts
from codemods.flow.modules import Span, Unit
from codemods.flow.solver import EntangledError
from codemods.legacy import PACKAGE, legacy_name


def unpointed(units: Iterable[Unit]) -> dict[Unit, list[tuple[Span, str]]]:
    """The expressions that may be something of `flax.optim`, outermost first, or build its name; with their source, by file."""
    try:
        facts = Facts(units)
    except (EntangledError, RecursionError):
        facts = Facts(())
    return {unit: [(unit.span(node), unit.source(node)) for node in _outermost(unit, facts)] for unit in units}


def _outermost(unit: Unit, facts: Facts) -> Iterator[ast.expr]:
    found: set[ast.AST] = set()
    for node in unit.nodes:
        if isinstance(node, ast.expr) and (_is_legacy(node, facts) or _builds_name(node)):
            if found.isdisjoint(unit.ancestors(node)):
                yield node
            found.add(node)


def _is_legacy(node: ast.expr, facts: Facts) -> bool:
    is_read = not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load)
    return is_read and any(legacy_name(name) is not None for name in facts.externals(node))


def _builds_name(node: ast.expr) -> bool:
    """Whether a formatted string begins with the package's name."""
    match node:
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.startswith(f"{PACKAGE}.")
    return False
