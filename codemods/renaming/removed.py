"""How a file says a full name: by what it imports already, else by an import more."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from codemods.analysis.facts import Facts
from codemods.analysis.names import CHOICES
from codemods.dataflow.bindings import bound_anywhere
from codemods.optimizers.base import Support
from codemods.removed.table import row_of
from codemods.sources.modules import Unit


@dataclass(frozen=True)
class Said:
    """A template, and what it needs imported."""

    template: str
    supports: tuple[Support, ...] = ()


def said(name: str, module: str, unit: Unit, facts: Facts) -> Said | None:
    """How a file says a name that is there once `module` is imported; None if what that would bind means something else there."""
    root = name.partition(".")[0]
    if root == "builtins":
        last = name.partition(".")[2]
        return None if bound_anywhere(unit)[last] else Said(last)
    above = name.rpartition(".")[0]
    while above:
        for known_as in _known_as(above, unit, facts):
            if f"{above}.".startswith(f"{module}.") or known_as == above:
                return Said(f"{known_as}{name.removeprefix(above)}", _importing(module, above))
        above = above.rpartition(".")[0]
    if module == root and root in CHOICES:
        return Said(f"{{{root}}}{name.removeprefix(root)}")
    taken = bound_anywhere(unit)[root] > _importing_root(root, unit, facts)
    return None if taken else Said(name, _importing(module, ""))


def _importing(module: str, known: str) -> tuple[Support, ...]:
    """The import of a module, unless what is imported is within it."""
    return (
        ()
        if f"{known}.".startswith(f"{module}.")
        else (Support(module, "", (f"import {module}",)),)
    )


def _known_as(name: str, unit: Unit, facts: Facts) -> Iterable[str]:
    """The names under which a file has a module at its top level, and nothing else."""
    bound = bound_anywhere(unit)
    for item in facts.imported(unit):
        is_top = unit.parents.get(item.statement) is unit.tree
        dotted = isinstance(item.statement, ast.Import) and not item.alias.asname
        full = item.name if dotted else item.target
        if (
            full == name
            and is_top
            and bound[item.name] == _importing_root(item.name, unit, facts)
            and not row_of(full)
        ):
            yield item.name


def _importing_root(bound: str, unit: Unit, facts: Facts) -> int:
    """How many imports bind a name to one and the same thing; none if they bind it to several."""
    items = [item for item in facts.imported(unit) if item.name == bound]
    meant = {
        item.name
        if isinstance(item.statement, ast.Import) and not item.alias.asname
        else item.target
        for item in items
    }
    return len(items) if len(meant) == 1 else 0
