"""Which imports are removed, which stay and why, and which are new."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

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
from codemods.rewriting.imports import ImportChanges, Place
from codemods.rules.imports import shares_its_line
from codemods.sources.modules import Unit


@dataclass
class ImportPlan(ImportChanges):
    """What changes of the imports of a file, and the legacy ones that stay, with the reason."""

    staying: dict[ast.AST, Reason] = field(default_factory=dict)

    @property
    def statements(self) -> list[str]:
        return [*chain.from_iterable(self.add.values())]


def plan_imports(plan: Plan) -> dict[Unit, ImportPlan]:
    """Decide on the imports of all files, once everything else is decided."""
    exports = Exports(plan)
    units = plan.facts.project.units
    return {unit: _File(unit, plan, exports).planned() for unit in units}


class _File:
    """The imports of one file."""

    def __init__(self, unit: Unit, plan: Plan, exports: Exports) -> None:
        self.unit = unit
        self.plan = plan
        self.facts = plan.facts
        self.exports = exports
        self.applied = [*exports.applied(unit)]
        self.imports = plan.facts.imported(unit)
        self.result = ImportPlan()

    def planned(self) -> ImportPlan:
        if self.plan.of(self.unit):
            unneeded = self._unneeded()
            self._offer_anew(unneeded)
            for item in unneeded:
                self.result.drop[self._start_of(item.statement)].add(_bound(item))
            self._move()
            self._add()
            for item in self.imports:
                self._add_flax(item)
        return self.result

    def _start_of(self, statement: ast.stmt) -> Place:
        """The line and the column at which a statement starts."""
        return self.unit.span(statement)[:2]

    def _unneeded(self) -> list[Import]:
        """The imports that nothing needs any more; `staying` gets the legacy ones that stay."""
        exports, staying = self.exports, self.result.staying
        removed = exports.removed_nodes(self.unit)
        words = self._words_of_new_code()
        unneeded: list[Import] = []
        unused: list[Import] = []
        for item in self.imports:
            is_legacy = legacy_name(item.target) is not None
            reads = loads(self.unit, item, self.facts)
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
                staying[item.statement] = keep
        # Names that nobody uses are removed with their statement, and stay with it, but where
        # something else has that name now.
        unneeded += [
            item
            for item in unused
            if item.statement not in staying
            or exports.exported(item) is not None
            or _mentioned_elsewhere(item, self.plan)
        ]
        return unneeded

    def _words_of_new_code(self) -> set[str]:
        """The words that new code has, so that imports of these are not removed."""
        found: set[str] = set()
        for decision in self.applied:
            for key in self._keys(decision):
                # train_state.TrainState needs `train_state`
                expression = self.plan.names[self.unit][key].expression
                found.add(expression.partition(".")[0])
            if decision.edit is not None:
                found.update(decision.edit.words)
        return found

    def _keys(self, decision: Decision) -> set[str]:
        """What an edit needs imported, by the keys of `CHOICES`."""
        edit = decision.edit
        if edit is None:
            return set()
        elsewhere = self.plan.shared.imported.get(self.unit, {})
        own = (one for one in edit.supports if one.name not in elsewhere)
        has_state = any(TRAIN_STATE in one.source for one in own)
        return (edit.needs | ({"TrainState"} if has_state else set())) & CHOICES.keys()

    def _offer_anew(self, unneeded: list[Import]) -> None:
        """Import what replaces the legacy names that the file offers to others."""
        offered: dict[str, dict[str, ast.stmt]] = {}
        for item in unneeded:
            module, name = self.exports.exported(item) or ("", "")
            # otherwise the file defines it itself
            if module:
                offered.setdefault(module, {})[name] = item.statement
        for module, names in offered.items():
            first = next(iter(names.values()))
            listed = ", ".join(sorted(names))
            statement = f"from {module} import {listed}"
            self.result.add[self._start_of(first)].append(statement)

    def _move(self) -> None:
        """Replace the imports of names that are in another module today."""
        # where `from jax.tree_util import ` goes, and the names behind it
        moved: dict[tuple[Place, str], list[str]] = {}
        for decision in self.applied:
            edit, node = decision.edit, decision.use.node
            # from jax import tree_map, which becomes `from jax.tree_util import tree_map`
            if not isinstance(edit, MoveImport):
                continue
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            start = self._start_of(node)
            self.result.drop[start].add(edit.bound)
            if edit.statement:
                head, word, name = edit.statement.rpartition("import ")
                moved.setdefault((start, f"{head}{word}"), []).append(name)
        for (start, head), names in moved.items():
            listed = ", ".join(dict.fromkeys(names))
            self.result.add[start].append(f"{head}{listed}")

    def _add(self) -> None:
        """Add the imports that new code needs, at the top or where the legacy name was bound."""
        wanted: dict[str, set[Place | None]] = {}
        for decision in self.applied:
            binding = [*_bindings_of(decision.use, self.imports, self.facts)]
            for item in binding:
                if item.target == "flax" or legacy_name(item.target) is not None:
                    self.result.origins.append(self._start_of(item.statement))
            near = self._nested_import(binding)
            for key in self._keys(decision):
                wanted.setdefault(key, set()).add(near)
        for key in sorted(wanted):
            statement = self.plan.names[self.unit][key].statement
            # an import at the top serves the functions that have one of their own, too
            places = {None} if None in wanted[key] else wanted[key]
            for near in sorted(places, key=lambda near: near or (0, 0)):
                if statement:
                    self.result.add[near].append(statement)

    def _add_flax(self, item: Import) -> None:
        """Add `import flax` in the place of `import flax.optim`, if other code reads `flax`."""
        statement, alias = item.statement, item.alias
        start = self._start_of(statement)
        is_dotted = alias.name.startswith("flax.optim") and not alias.asname
        is_dropped = alias.name in self.result.drop.get(start, ())
        if not (is_dotted and is_dropped and isinstance(statement, ast.Import)):
            return
        for other in self.imports:
            is_in_scope = other is not item and other.scope is item.scope
            # import flax
            if is_in_scope and other.name == "flax":
                return
        # flax.jax_utils.replicate(…), by the same name
        if self.exports.remaining(item):
            is_at_top = self.unit.parents.get(statement) is self.unit.tree
            near = None if is_at_top else start
            self.result.add[near].append("import flax")

    def _nested_import(self, binding: list[Import]) -> Place | None:
        """The statement that bound the name at a use, if each import is nested; else None."""
        is_nested = all(
            _is_nested(item, self.unit) and legacy_name(item.target) is not None
            for item in binding
        )
        return self._start_of(binding[0].statement) if binding and is_nested else None


def _bound(item: Import) -> str:
    if item.name == "*":
        return "*"
    # `flax.optim`, of `import flax.optim`
    return item.alias.asname or item.alias.name


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
