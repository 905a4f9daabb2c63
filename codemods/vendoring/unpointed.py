"""What still refers to a removed package in files whose imports are pointed at a copy of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from codemods.analysis.facts import Facts
from codemods.analysis.reflection import looks_up_module
from codemods.sources.modules import Span, Unit
from codemods.vendoring.packages import OPTIM, RemovedPackage


def unpointed(
    units: Iterable[Unit], package: RemovedPackage = OPTIM
) -> dict[Unit, list[tuple[Span, str]]]:
    """The expressions that are of a package or build its name, with their text, by file."""
    units = list(units)
    try:
        facts = Facts(units)
    except RecursionError:
        facts = Facts(())
    found: dict[Unit, list[tuple[Span, str]]] = {}
    for unit in units:
        expressions = (node for node in unit.nodes if isinstance(node, ast.expr))
        left = [node for node in expressions if _gets_at(node, facts, package)]
        found[unit] = [(unit.span(node), unit.source(node)) for node in left]
    return found


def _gets_at(node: ast.expr, facts: Facts, package: RemovedPackage) -> bool:
    """Whether an expression is of a package, and none of its parts is.

    Variables, and their attributes, do not count.
    """
    match node:
        # Adam, behind `from flax.optim import Adam`
        case ast.Name():
            return _is_legacy(node, facts, package) and facts.names_legacy(node)
        # {"class": "flax.optim.Adam"}
        case ast.Constant(value=str(text)):
            names = "|".join(map(re.escape, package.names))
            return re.fullmatch(rf"(?:{names})(?:[.:]\w*)*", text) is not None
        # f"flax.optim.{name}"
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.startswith(tuple(f"{name}." for name in package.names))
    if looks_up_module(facts, node, package.name):
        return True
    if not _is_legacy(node, facts, package):
        return False
    # optim.Adam(rate).create(params): only the innermost part is listed
    for part in ast.walk(node):
        if part is node or not isinstance(part, ast.expr):
            continue
        if _is_legacy(part, facts, package):
            return False
    return True


def _is_legacy(node: ast.expr, facts: Facts, package: RemovedPackage) -> bool:
    prefixes = tuple(f"{name}." for name in package.names)
    return any(f"{name}.".startswith(prefixes) for name in facts.externals(node))
