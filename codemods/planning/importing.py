"""Which imports are removed, which stay and why, and which are new."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codemods.analysis.facts import Facts
from codemods.analysis.import_names import CHOICES
from codemods.analysis.legacy import legacy_name
from codemods.analysis.naming import last_word
from codemods.analysis.uses import Use
from codemods.inference.reading import FunctionNode
from codemods.inference.recorded import Import
from codemods.optimizers.base import TRAIN_STATE
from codemods.planning.decisions import Decision, Plan
from codemods.planning.exporting import Exports, Reason, loads
from codemods.rewriting.edits import MoveImport
from codemods.rewriting.imports import Addition, ImportChanges, ImportedName, Place
from codemods.rules.imports import shares_its_line
from codemods.sources.modules import Unit


@dataclass
class ImportPlan(ImportChanges):
    """What changes of the imports of a file, and the legacy ones that stay, with the reason."""

    staying: dict[ast.AST, Reason] = field(default_factory=dict)

    @property
    def statements(self) -> list[str]:
        return [addition.statement for addition in self.add]


def plan_imports(plan: Plan) -> dict[Unit, ImportPlan]:
    """Decide on the imports of all files, once everything else is decided."""
    exports = Exports(plan, lambda unit: _removed_nodes(plan.of(unit)))
    units = plan.facts.project.units
    return {unit: _of_file(unit, plan, exports) for unit in units}


def _of_file(unit: Unit, plan: Plan, exports: Exports) -> ImportPlan:
    result = ImportPlan()
    if not plan.of(unit):
        return result
    applied = list(_applied(plan.of(unit)))
    imports = plan.facts.imported(unit)
    unneeded = _unneeded(unit, plan, applied, exports, result)
    result.add += _offered_anew(unit, unneeded, exports)
    for item in unneeded:
        line, column = _start_of(item.statement, unit)
        result.drop.append(ImportedName(line, column, _bound(item)))
    _move(unit, applied, result)
    _add(unit, plan, applied, imports, exports, result)
    return result


def _unneeded(
    unit: Unit,
    plan: Plan,
    applied: list[Decision],
    exports: Exports,
    result: ImportPlan,
) -> list[Import]:
    """The imports that nothing needs any more; `result.staying` gets the legacy ones that stay."""
    removed = exports.removed_nodes(unit)
    words = _words_of_new_code(unit, plan, applied)
    unneeded: list[Import] = []
    unused: list[Import] = []
    for item in plan.facts.imported(unit):
        is_legacy = legacy_name(item.target) is not None
        reads = loads(unit, item, plan.facts)
        # `from flax import jax_utils`, if the edits do not remove what reads it, or need it
        if not is_legacy:
            is_in_use = item.name in words or removed.isdisjoint(reads)
            if is_in_use or exports.remaining(item):
                continue
        keep = exports.reason_to_stay(item)
        if keep is None and reads:
            unneeded.append(item)
        elif keep is None:
            unused.append(item)
        elif is_legacy:
            result.staying[item.statement] = keep
    # Names that nobody uses are removed with their statement, and stay with it, but where
    # something else has that name now.
    unneeded += [
        item
        for item in unused
        if item.statement not in result.staying
        or exports.exported(item) is not None
        or _mentioned_elsewhere(item, plan)
    ]
    return unneeded


def _words_of_new_code(unit: Unit, plan: Plan, applied: list[Decision]) -> set[str]:
    """The words that new code has, so that imports of these are not removed."""
    found: set[str] = set()
    for decision in applied:
        for key in _keys(decision, plan):
            # train_state.TrainState needs `train_state`
            expression = plan.names[unit][key].expression
            found.add(expression.partition(".")[0])
        if decision.edit is not None:
            found.update(decision.edit.words)
    return found


def _keys(decision: Decision, plan: Plan) -> set[str]:
    """What an edit needs imported, by the keys of `CHOICES`."""
    edit = decision.edit
    if edit is None:
        return set()
    elsewhere = plan.shared.imported.get(decision.use.unit, {})
    own = (one for one in edit.supports if one.name not in elsewhere)
    of_helpers = (
        {"TrainState"} if any(TRAIN_STATE in one.source for one in own) else set()
    )
    return (edit.needs | of_helpers) & CHOICES.keys()


def _offered_anew(
    unit: Unit, unneeded: list[Import], exports: Exports
) -> Iterator[Addition]:
    """The imports of what replaces the legacy names that a file offers to others."""
    offered: dict[str, dict[str, ast.stmt]] = {}
    for item in unneeded:
        found = exports.exported(item)
        if found is None:
            continue
        module, name = found
        # otherwise the file defines it itself
        if module:
            offered.setdefault(module, {})[name] = item.statement
    for module, names in offered.items():
        first = next(iter(names.values()))
        listed = ", ".join(sorted(names))
        yield Addition(f"from {module} import {listed}", _start_of(first, unit))


def _move(unit: Unit, applied: list[Decision], result: ImportPlan) -> None:
    """Replace the imports of names that are in another module today."""
    # where `from jax.tree_util import ` goes, and the names behind it
    moved: dict[tuple[Place, str], list[str]] = {}
    for decision in applied:
        edit, node = decision.edit, decision.use.node
        # from jax import tree_map, which becomes `from jax.tree_util import tree_map`
        if not isinstance(edit, MoveImport):
            continue
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        start = _start_of(node, unit)
        result.drop.append(ImportedName(*start, edit.bound))
        if not edit.statement:
            continue
        head, word, name = edit.statement.rpartition("import ")
        names = moved.setdefault((start, f"{head}{word}"), [])
        names.append(name)
    for (start, head), names in moved.items():
        listed = ", ".join(dict.fromkeys(names))
        result.add.append(Addition(f"{head}{listed}", start))


def _bound(item: Import) -> str:
    if item.name == "*":
        return "*"
    # `flax.optim`, of `import flax.optim`
    return item.alias.asname or item.alias.name


def _removed_nodes(decisions: Iterable[Decision]) -> set[ast.AST]:
    """The nodes that the edits remove: the names of legacy classes, but not their arguments."""
    found: set[ast.AST] = set()
    for decision in _applied(decisions):
        edit = decision.edit
        if edit is not None:
            found.update(edit.gone(decision.use))
    return found


def _applied(decisions: Iterable[Decision]) -> Iterator[Decision]:
    """The decisions that apply, other than those on imports."""
    for decision in decisions:
        if decision.applies and decision.use.kind != "import":
            yield decision


def _mentioned_elsewhere(item: Import, plan: Plan) -> bool:
    """Whether another file has the name that an import binds, and may have used it from here."""
    for unit in plan.facts.project.units:
        if unit is item.unit:
            continue
        for node in unit.nodes:
            match node:
                # train.optim, or `from train import optim`
                case ast.Attribute(attr=name) | ast.alias(name=name):
                    if name == item.name:
                        return True
    return False


def _add(
    unit: Unit,
    plan: Plan,
    applied: list[Decision],
    imports: list[Import],
    exports: Exports,
    result: ImportPlan,
) -> None:
    """Add the imports that new code needs, at the top or where the legacy name was bound."""
    wanted: dict[str, set[Place | None]] = {}
    for decision in applied:
        binding = [*_bindings_of(decision.use, imports, plan.facts)]
        for item in binding:
            if item.target == "flax" or legacy_name(item.target) is not None:
                result.origins.append(_start_of(item.statement, unit))
        near = _nested_import(binding, unit)
        for key in _keys(decision, plan):
            wanted.setdefault(key, set()).add(near)
    for key in sorted(wanted):
        statement = plan.names[unit][key].statement
        # an import at the top serves the functions that have one of their own, too
        places = {None} if None in wanted[key] else wanted[key]
        if statement:
            in_order = sorted(places, key=lambda near: near or (0, 0))
            result.add.extend(Addition(statement, near) for near in in_order)
    for item in imports:
        _add_flax(unit, item, plan, imports, exports, result)


def _add_flax(
    unit: Unit,
    item: Import,
    plan: Plan,
    imports: list[Import],
    exports: Exports,
    result: ImportPlan,
) -> None:
    """Add `import flax` in the place of `import flax.optim`, if other code reads `flax`."""
    statement, alias = item.statement, item.alias
    start = _start_of(statement, unit)
    is_dotted = alias.name.startswith("flax.optim") and not alias.asname
    is_dropped = ImportedName(*start, alias.name) in result.drop
    if not (is_dotted and is_dropped and isinstance(statement, ast.Import)):
        return
    for other in imports:
        is_in_scope = other is not item and other.scope is item.scope
        # import flax
        if is_in_scope and other.name == "flax":
            return
    # flax.jax_utils.replicate(…), by the same name
    if not exports.removed_nodes(unit).issuperset(loads(unit, item, plan.facts)):
        is_at_top = unit.parents.get(statement) is unit.tree
        near = None if is_at_top else start
        result.add.append(Addition("import flax", near))


def _start_of(statement: ast.stmt, unit: Unit) -> tuple[int, int]:
    """The line and the column at which a statement starts."""
    return unit.span(statement)[:2]


def _bindings_of(use: Use, imports: list[Import], facts: Facts) -> Iterator[Import]:
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


def _nested_import(binding: list[Import], unit: Unit) -> Place | None:
    """The statement that bound the name at a use, if each import of it is in a function or `try`.

    None when the new import belongs to the module's top level.
    """
    is_nested = all(
        _is_nested(item, unit) and legacy_name(item.target) is not None
        for item in binding
    )
    return _start_of(binding[0].statement, unit) if binding and is_nested else None


def _is_nested(item: Import, unit: Unit) -> bool:
    """Whether an import is a statement of a function, or one that is tried or for types alone.

    Below another condition, as one on the version of Flax, it might not be reached any more.
    """
    statement = item.statement
    around = unit.parents[statement]
    match around:
        case ast.Try(body=body):
            is_own = statement in body
        case ast.If(test=test, orelse=[]):
            is_own = last_word(test) == "TYPE_CHECKING"
        case _:
            is_own = isinstance(around, FunctionNode)
    # not where `global optim` gives the name to the module
    own_scope = around if isinstance(around, FunctionNode) else unit.parents.get(around)
    is_bound_here = own_scope is item.scope.node
    return is_own and is_bound_here and not shares_its_line(unit, statement)
