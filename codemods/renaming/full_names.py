"""How a file refers to a full name: by what it imports already, or by one more import."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from codemods.analysis.facts import Facts
from codemods.analysis.import_names import CHOICES
from codemods.inference.recorded import Import
from codemods.optimizers.base import Support
from codemods.removed.table import row_of
from codemods.sources.modules import Unit


@dataclass(frozen=True)
class Said:
    """A template, and the imports that it needs."""

    template: str
    supports: tuple[Support, ...] = ()


def said(name: str, module: str, unit: Unit, facts: Facts) -> Said | None:
    """How a file refers to a name of a module; None if the name means something else there."""
    root, _, rest = name.partition(".")
    if root == "builtins":
        is_bound = unit.names_bound[rest] > 0
        return None if is_bound else Said(rest)
    # `jnp.sqrt` in a file with `import jax.numpy as jnp`
    above = name.rpartition(".")[0]
    while above:
        for known_as in _known_as(above, unit, facts):
            is_within = f"{above}.".startswith(f"{module}.")
            if is_within or known_as == above:
                template = f"{known_as}{name.removeprefix(above)}"
                return Said(template, _importing(module, above))
        above = above.rpartition(".")[0]
    # a file gets `jax` or `optax` as other new code does
    if module == root and root in CHOICES:
        return Said(f"{{{root}}}{name.removeprefix(root)}")
    # def jax(): ...
    imports = _importing_root(root, unit, facts)
    if unit.names_bound[root] > imports:
        return None
    return Said(name, _importing(module, ""))


def _importing(module: str, known: str) -> tuple[Support, ...]:
    """The import of a module, unless what is known is within it."""
    if f"{known}.".startswith(f"{module}."):
        return ()
    return (Support(module, "", (f"import {module}",)),)


def _known_as(name: str, unit: Unit, facts: Facts) -> Iterable[str]:
    """The names that only stand for a module at the top level of a file."""
    bound = unit.names_bound
    for item in facts.imported(unit):
        is_at_top = unit.parents.get(item.statement) is unit.tree
        if _meant(item) != name or not is_at_top:
            continue
        # nothing but imports of one module binds the name
        imports = _importing_root(item.name, unit, facts)
        if bound[item.name] == imports and not row_of(name):
            yield item.name


def _importing_root(bound: str, unit: Unit, facts: Facts) -> int:
    """How many imports bind a name, if all to the same module or name; none otherwise."""
    items = [item for item in facts.imported(unit) if item.name == bound]
    meant = {_meant(item) for item in items}
    if len(meant) != 1:
        return 0
    return len(items)


def _meant(item: Import) -> str:
    """The full name of what an import binds: `jax` for `import jax.numpy`."""
    is_dotted = isinstance(item.statement, ast.Import) and not item.alias.asname
    return item.name if is_dotted else item.target
