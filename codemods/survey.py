"""Every use of a removed name in some files, those of flax.optim included.

Nothing is rewritten here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.analysis.removed_names import (
    UNKNOWN,
    is_guarded,
    names_removed,
    removed_uses,
    uses_removed,
)
from codemods.analysis.uses import Use
from codemods.model import Source
from codemods.removed.present import unknown
from codemods.removed.table import (
    LEGACY,
    NEVER,
    Removed,
    RemovedUse,
    changed,
    once_modules,
    row_of,
)
from codemods.sources.modules import Unit
from codemods.sources.notebook import read
from codemods.sources.parsing import parse
from codemods.sources.prefilter import mentions_legacy
from codemods.sources.text import UndecodableError
from codemods.vocabulary import PACKAGE


def survey(sources: Iterable[Source]) -> Iterator[RemovedUse]:
    """Go through files one by one, in order."""
    for source in sources:
        try:
            unit = _read(source)
        except SyntaxError as error:
            problem = f"cannot be parsed as Python 3: {error.msg}"
            yield RemovedUse(source.path, error.lineno or 1, None, problem)
            continue
        except (RecursionError, MemoryError, UndecodableError) as error:
            yield RemovedUse(source.path, 1, None, str(error) or "nested too deeply")
            continue
        if unit is None:
            continue
        if names_removed(unit) or mentions_legacy(source.content):
            yield from _in_file(unit)


def _read(source: Source) -> Unit | None:
    """A file that may use a removed name; None if it cannot.

    Raises:
      SyntaxError: if it is not Python.
      UndecodableError: if it is not text.
    """
    text = read(source.path, source.content)
    code = text.code
    if not (uses_removed(code) or mentions_legacy(source.content)):
        return None
    return Unit(source.path, code, parse(code), text.places)


def _row(use: Use) -> Removed | None:
    if use.kind == UNKNOWN:
        found = unknown(use.name)
        if not found or not found.version:
            return None
        return Removed(found.name, found.version, NEVER, "", "", "", found.remedy)
    row = changed().get(use.name) or once_modules().get(use.name)
    return row or row_of(use.name)


def _in_file(unit: Unit) -> Iterator[RemovedUse]:
    facts = Facts([unit])
    for use in removed_uses(facts, unit):
        row = _row(use)
        if row is not None:
            yield RemovedUse(unit.path, unit.line(use.node.lineno), row)
    lines = {node.lineno for node in _naming_legacy(facts, unit)}
    for line in sorted(lines):
        yield RemovedUse(unit.path, unit.line(line), LEGACY)


def _naming_legacy(facts: Facts, unit: Unit) -> Iterator[ast.stmt | ast.expr]:
    """The imports of `flax.optim` or of a name from it, and what reads it as an attribute.

    What is done if there is none of that name is left out.
    """
    # from flax import optim
    found: list[ast.stmt | ast.expr] = [
        item.statement
        for item in facts.imported(unit)
        if legacy_name(item.target) is not None
    ]
    # flax.optim, of `flax.optim.Adam`
    for node in unit.nodes:
        match node:
            case ast.Attribute(attr="optim") if PACKAGE in facts.externals(node):
                found.append(node)
    # importlib.import_module("flax.optim"), "flax.optim.Optimizer" as a type
    for use in facts.uses:
        is_type = use.kind == "annotation" and use.quoted
        is_by_text = use.kind in ("module", "in_text") or is_type
        if is_by_text and isinstance(use.node, ast.stmt | ast.expr):
            found.append(use.node)
    return (node for node in found if not is_guarded(unit, node))
