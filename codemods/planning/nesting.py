"""Imports within functions and conditions: which of them bind a name where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.analysis.uses import Use
from codemods.inference.recorded import Import
from codemods.rules.imports import shares_its_line
from codemods.sources.bindings import ScopeNode
from codemods.sources.modules import Unit


def start_of(statement: ast.stmt, unit: Unit) -> tuple[int, int]:
    """The line and the column at which a statement starts."""
    return unit.span(statement)[:2]


def bindings_of(use: Use, imports: list[Import], facts: Facts) -> Iterator[Import]:
    """The imports that bind the name at a use."""
    reading = facts.flow.reading
    root: ast.AST = use.node
    # optim.Adam(learning_rate=0.1)
    if isinstance(root, ast.Call):
        root = root.func
    # def train(optimizer: "optim.Optimizer")
    if isinstance(root, ast.Constant):
        quoted = (one.expression for one in reading.annotations if one.node is root)
        root = next(quoted, root)
    for node in ast.walk(root):
        if not isinstance(node, ast.Name) or node not in reading.scopes:
            continue
        scope = facts.scope(node).binding(node.id)
        for item in imports:
            if item.scope is scope and item.name in (node.id, "*"):
                yield item


def nested_import(
    use: Use, binding: list[Import], unit: Unit, facts: Facts
) -> tuple[int, int] | None:
    """The nested import statement that bound the name at a use.

    None when the new import belongs to the module's top level.
    """
    nested = [
        item
        for item in binding
        if _is_nested(item, unit) and not shares_its_line(unit, item.statement)
    ]
    # where one of them is not nested, the top of the module serves
    if not nested or len(nested) < len(binding):
        return None
    if any(legacy_name(item.target) is None for item in nested):
        return None
    item = nested[0]
    is_elsewhere = _has_an_else(item, unit) or _is_on_condition(item, use, unit, facts)
    return None if is_elsewhere else start_of(item.statement, unit)


def _has_an_else(item: Import, unit: Unit) -> bool:
    """Whether the name is also bound in the other branch, as with `if TYPE_CHECKING:`."""
    branch = unit.parents.get(item.statement)
    if not isinstance(branch, ast.If):
        return False
    for node in chain.from_iterable(map(ast.walk, branch.orelse)):
        match node:
            # else: optim = None
            case ast.Name(id=item.name, ctx=ast.Store()):
                return True
    return False


def _is_nested(item: Import, unit: Unit) -> bool:
    """Whether an import stands within another statement, and binds its name where it stands."""
    if unit.parents[item.statement] is unit.tree:
        return False
    ancestors = unit.ancestors(item.statement)
    around = next(node for node in ancestors if isinstance(node, ScopeNode))
    # not so with `global optim`
    return around is item.scope.node


def _is_on_condition(item: Import, use: Use, unit: Unit, facts: Facts) -> bool:
    """Whether an import may not be reached where a name is used.

    It is below a condition on the old package, which is not met any more.
    """
    around_use = set(unit.ancestors(use.node))
    for node in unit.ancestors(item.statement):
        if node in around_use:
            continue
        # except ImportError: from flax import optim
        if isinstance(node, ast.ExceptHandler):
            return True
        # if flax.__version__ < "0.6": from flax import optim
        if isinstance(node, ast.If) and not _asks_of_others(node.test, facts):
            return True
    return False


def _asks_of_others(test: ast.expr, facts: Facts) -> bool:
    """Whether a condition is on something other than Flax, such as the version of Python."""
    for node in ast.walk(test):
        if not isinstance(node, ast.Name):
            continue
        full_names = facts.externals(node)
        packages = {name.partition(".")[0] for name in full_names}
        # a name of the program itself may stand for anything
        if not full_names or "flax" in packages:
            return False
    return True
