"""Which imports go, which stay and why, and which are new."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, is_dataclass

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.analysis.names import CHOICES
from codemods.analysis.uses import Use
from codemods.cst.template import SLICES
from codemods.flow.binding import values_of
from codemods.flow.reading import Import
from codemods.flow.scopes import ScopeNode
from codemods.model import Refusal, Status
from codemods.optimizers import composite
from codemods.planning.exporting import Exports, loads
from codemods.planning.plan import Decision, Plan
from codemods.rewriting import edits
from codemods.rewriting.imports import Addition, ImportedName
from codemods.rules.imports import shares_its_line
from codemods.sources.modules import Span, Unit

WORD = re.compile(r"\b[^\W\d]\w*")
ROOT = re.compile(r"(?<![\w.])[^\W\d]\w*")
"""A word that is no attribute."""

HOLE = re.compile(r"\{[^{}]*\}")
PLACEHOLDER = re.compile(rf"\{{({'|'.join(CHOICES)})\}}")


@dataclass
class ImportPlan:
    """Names to drop from import statements, statements to add, and the legacy imports that stay, with the reason.

    `origins` are where the statements start that bind what is replaced.
    """

    drop: list[ImportedName] = field(default_factory=list)
    add: list[Addition] = field(default_factory=list)
    kept: dict[ast.AST, tuple[Status, Refusal]] = field(default_factory=dict)
    origins: list[tuple[int, int]] = field(default_factory=list)

    @property
    def statements(self) -> list[str]:
        return [addition.statement for addition in self.add]


def plan_imports(plan: Plan) -> dict[Unit, ImportPlan]:
    """Decide on the imports of all files, once all else is decided."""
    exports = Exports(plan, lambda unit: _gone(plan.of(unit), unit))
    units = plan.facts.project.units
    return {
        unit: _of_file(unit, plan, exports) if plan.of(unit) else ImportPlan() for unit in units
    }


def _of_file(unit: Unit, plan: Plan, exports: Exports) -> ImportPlan:
    result = ImportPlan()
    decisions = plan.of(unit)
    gone = exports.gone(unit)
    applied = list(_in_what_stays(decisions, unit))
    imports = plan.facts.imported(unit)
    said = {
        plan.names[unit][key].expression.partition(".")[0]
        for decision in applied
        for key in _keys(decision)
    }
    said |= {word for decision in applied for word in _words(decision)}
    going: list[Import] = []
    unused: list[Import] = []
    for item in imports:
        legacy = legacy_name(item.target) is not None
        used = loads(unit, item, plan.facts)
        if not legacy and (
            item.name in said or not any(node in gone for node in used) or exports.remaining(item)
        ):
            continue
        keep = exports.kept(item)
        if keep is None:
            (going if used else unused).append(item)
        elif legacy:
            result.kept[item.statement] = keep
    # Names that nobody uses go with their statement, and stay with it.
    going += [
        item
        for item in unused
        if item.statement not in result.kept or _mentioned_elsewhere(item, plan)
    ]
    offered: dict[str, dict[str, ast.stmt]] = {}
    for item in going:
        if (found := exports.exported(item)) is not None and found[0]:
            offered.setdefault(found[0], {})[found[1]] = item.statement
    for module, names in offered.items():
        near = _start(unit, next(iter(names.values())))
        result.add.append(Addition(f"from {module} import {', '.join(sorted(names))}", near))
    result.drop += [ImportedName(*_start(unit, item.statement), _bound(item)) for item in going]
    moved: dict[tuple[tuple[int, int], str], list[str]] = {}
    for decision in applied:
        if isinstance(decision.edit, edits.MoveImport) and isinstance(
            decision.use.node, ast.Import | ast.ImportFrom
        ):
            start = _start(unit, decision.use.node)
            result.drop.append(ImportedName(*start, decision.edit.bound))
            if not decision.edit.statement:
                continue
            head, word, name = decision.edit.statement.rpartition("import ")
            moved.setdefault((start, f"{head}{word}"), []).append(name)
    result.add += [
        Addition(f"{head}{', '.join(dict.fromkeys(names))}", start)
        for (start, head), names in moved.items()
    ]
    _add(unit, plan, applied, imports, exports, result)
    return result


def _start(unit: Unit, statement: ast.stmt) -> tuple[int, int]:
    return unit.span(statement)[:2]


def _in_what_stays(decisions: Iterable[Decision], unit: Unit) -> Iterator[Decision]:
    """The decisions that change the file, but for steps that are read in statements that go; all else may have been moved."""
    applied = [
        decision for decision in decisions if decision.applies and decision.use.kind != "import"
    ]
    changes = (decision.edit for decision in applied)
    removed = [
        edit.span
        for edit in changes
        if isinstance(edit, edits.ReplaceStatement) and not edit.templates
    ]
    for decision in applied:
        is_step = decision.use.kind == "state.step"
        if not (is_step and any(_is_in(decision.use.node, span, unit) for span in removed)):
            yield decision


def _bound(item: Import) -> str:
    return "*" if item.name == "*" else item.alias.asname or item.alias.name


def _gone(decisions: Iterable[Decision], unit: Unit) -> set[ast.AST]:
    """The nodes that the edits remove: the names of legacy classes, not what they were given."""
    gone: set[ast.AST] = set()
    for decision in decisions:
        node = decision.use.node
        if not decision.applies or decision.use.kind == "import":
            continue
        called = node.func if isinstance(node, ast.Call) else node
        parts: list[ast.AST] = []
        match decision.edit:
            case edits.Replace(template=template) | edits.Spread(templates=template) if (
                edits.IT in template
            ):
                continue
            case edits.Replace(holes=holes, span=span) if (
                decision.use.kind == "removed" and isinstance(node, ast.expr)
            ):
                whole = (
                    decision.use.call
                    if decision.use.call is not None and unit.span(decision.use.call) == span
                    else node
                )
                kept = [hole for _, hole in holes]
                inside = (inner for inner in ast.walk(whole) if isinstance(inner, ast.expr))
                gone.update(
                    inner for inner in inside if not any(_is_in(inner, hole, unit) for hole in kept)
                )
            case edits.RewriteCall() if decision.use.kind == "removed":
                parts = [node, *_left_out(decision.edit, node, unit)]
            case edits.Replace() if decision.use.kind == "module":
                parts = [node]
            case edits.Replace(holes=(), span=span) if isinstance(node, ast.expr):
                inside = (inner for inner in ast.walk(node) if isinstance(inner, ast.expr))
                gone.update(inner for inner in inside if _is_in(inner, span, unit))
            case edits.ReplaceQuoted():
                parts = [*decision.use.said]
            case edits.ConvertClass() | edits.ConvertLookup():
                parts = [called]
            case edits.ConvertDefinition() | edits.TakePart() | edits.Replace() if (
                called is not node
            ):
                parts = [called]
            case edits.DeriveState() if isinstance(node, ast.ClassDef):
                parts = [*node.decorator_list]
            case edits.ReplaceStatement(templates=()) | edits.Spread():
                parts = [node]
            case edits.ChangeParameters(split=split) if isinstance(node, ast.FunctionDef):
                names = {one.name for one in split}
                parts = [
                    inner
                    for inner in ast.walk(node.args)
                    if isinstance(inner, ast.arg) and inner.arg in names
                ]
            case edits.RewriteCall() | edits.ChangeArguments():
                parts = _left_out(decision.edit, node, unit)
        gone.update(inner for part in parts for inner in ast.walk(part))
    return gone


def _left_out(
    edit: edits.RewriteCall | edits.ChangeArguments, node: ast.AST, unit: Unit
) -> list[ast.AST]:
    """What a call has before an edit, and not after it."""
    call = (
        node
        if isinstance(node, ast.Call) and unit.span(node) == edit.span
        else unit.parents.get(node)
    )
    if not isinstance(call, ast.Call) or unit.span(call) != edit.span:
        return []
    values = values_of(call)
    if isinstance(edit, edits.ChangeArguments):
        alone = edit.is_partial and not edit.added and len(values) == 1 + len(edit.dropped)
        return [*(values[index] for index in edit.dropped), *([call.func] if alone else [])]
    kept = {argument.index for argument in edit.arguments}
    said = " ".join(
        (edit.function, edit.prelude, *(argument.template for argument in edit.arguments))
    )
    holes = [span for _, span in edit.holes]

    def is_said(value: ast.expr) -> bool:
        return any(
            unit.span(part) in holes for part in ast.walk(value) if isinstance(part, ast.expr)
        )

    others = (
        value
        for index, value in enumerate(values)
        if index not in kept and f"{{argument:{index}}}" not in said
    )
    sliced = [span for name, span in edit.holes if name == SLICES]
    indexed = [
        value for value in values if isinstance(value, ast.Subscript) and unit.span(value) in sliced
    ]
    return [*(value for value in others if not is_said(value)), *(value.value for value in indexed)]


def _is_in(node: ast.expr | ast.stmt, span: Span, unit: Unit) -> bool:
    """Whether something stands within a span."""
    own = unit.span(node)
    return span[:2] <= own[:2] and own[2:] <= span[2:]


def _mentioned_elsewhere(item: Import, plan: Plan) -> bool:
    """Whether another file says the name that an import binds, so that it may have been in use there."""
    nodes = (
        node for unit in plan.facts.project.units if unit is not item.unit for node in unit.nodes
    )
    said = (node for node in nodes if isinstance(node, ast.Attribute | ast.alias))
    return any(
        item.name == (node.attr if isinstance(node, ast.Attribute) else node.name) for node in said
    )


def _add(
    unit: Unit,
    plan: Plan,
    applied: list[Decision],
    imports: list[Import],
    exports: Exports,
    result: ImportPlan,
) -> None:
    """The imports that the new code needs, each where the legacy name that it replaces was bound."""
    wanted: dict[str, list[tuple[int, int] | None]] = {}
    for decision in applied:
        binding = list(_binding(decision.use, imports, plan.facts))
        legacy = (
            item
            for item in binding
            if item.target == "flax" or legacy_name(item.target) is not None
        )
        result.origins += [_start(unit, item.statement) for item in legacy]
        near = _near(decision.use, binding, unit, plan.facts)
        for key in _keys(decision):
            wanted.setdefault(key, []).append(near)
    for key in sorted(wanted):
        statement = plan.names[unit][key].statement
        if statement:
            places = {None} if None in wanted[key] else set(wanted[key])
            result.add.extend(
                Addition(statement, near)
                for near in sorted(places, key=lambda near: near or (0, 0))
            )
    for item in imports:
        dotted = item.alias.name.startswith("flax.optim") and not item.alias.asname
        dropped = ImportedName(*_start(unit, item.statement), item.alias.name) in result.drop
        if not (dotted and dropped and isinstance(item.statement, ast.Import)):
            continue
        others = (other for other in imports if other is not item)
        bound = any(other.name == "flax" and other.scope is item.scope for other in others)
        if not bound and not exports.gone(unit).issuperset(loads(unit, item, plan.facts)):
            top = unit.parents.get(item.statement) is unit.tree
            result.add.append(
                Addition("import flax", None if top else _start(unit, item.statement))
            )


def _keys(decision: Decision) -> set[str]:
    """What an edit needs imported, by the keys of `CHOICES`."""
    match decision.edit:
        case edits.ConvertDefinition(optimizer=name):
            return set() if name in composite() else {"optax"}
        case edits.DeriveState():
            return {"TrainState"}
        case edits.MakeStatic():
            return set() if isinstance(decision.use.node, ast.Call) else {"partial"}
        case edits.TakePart() | edits.ChangeArguments():
            return set()
    return {match[1] for text in _texts(decision.edit) for match in PLACEHOLDER.finditer(text)}


def _texts(part: object) -> Iterator[str]:
    """All texts of an edit, or of a part of it."""
    if isinstance(part, str):
        yield part
    parts = part if isinstance(part, tuple) else vars(part).values() if is_dataclass(part) else ()
    for inner in parts:
        yield from _texts(inner)


def _words(decision: Decision) -> list[str]:
    """The words of source text that an edit puts into the file as it is."""
    match decision.edit:
        case edits.ConvertDefinition(rate=rate, link=link):
            return WORD.findall(f"{rate} {link}")
        case edits.ChangeArguments(added=added):
            return [word for _, text in added for word in WORD.findall(text)]
        case edits.ReplaceQuoted(names=names):
            return [word for _, text in names for word in ROOT.findall(HOLE.sub("it", text))]
        case edits.Replace(template=text):
            return ROOT.findall(HOLE.sub("it", text))
        case _:
            return []


def _has_an_else(item: Import, unit: Unit) -> bool:
    """Whether the name is bound in the other branch too, as with `if TYPE_CHECKING:`, so that it is there in any case."""
    branch = unit.parents.get(item.statement)
    others = branch.orelse if isinstance(branch, ast.If) else []
    names = (node for other in others for node in ast.walk(other) if isinstance(node, ast.Name))
    return any(node.id == item.name and isinstance(node.ctx, ast.Store) for node in names)


def _is_nested(item: Import, unit: Unit) -> bool:
    """Whether an import stands within another statement, and binds its name where it stands."""
    around = next(node for node in unit.ancestors(item.statement) if isinstance(node, ScopeNode))
    return unit.parents[item.statement] is not unit.tree and around is item.scope.node


def _binding(use: Use, imports: list[Import], facts: Facts) -> Iterator[Import]:
    """The imports that bind the name at a use."""
    root: ast.AST = use.node.func if isinstance(use.node, ast.Call) else use.node
    if isinstance(root, ast.Constant):
        quoted = (
            found.expression for found in facts.flow.reading.annotations if found.node is root
        )
        root = next(quoted, root)
    for node in ast.walk(root):
        if isinstance(node, ast.Name) and node in facts.flow.reading.scopes:
            scope = facts.scope(node).binding(node.id)
            yield from (
                item for item in imports if item.scope is scope and item.name in (node.id, "*")
            )


def _near(use: Use, binding: list[Import], unit: Unit, facts: Facts) -> tuple[int, int] | None:
    """The nested import statement that bound the name at a use; None when the new one belongs to the module's top level."""
    nested = [
        item
        for item in binding
        if _is_nested(item, unit) and not shares_its_line(unit, item.statement)
    ]
    if (
        not nested
        or len(nested) < len(binding)
        or any(legacy_name(item.target) is None for item in nested)
    ):
        return None
    item = nested[0]
    is_elsewhere = _has_an_else(item, unit) or _is_on_condition(item, use, unit, facts)
    return None if is_elsewhere else _start(unit, item.statement)


def _is_on_condition(item: Import, use: Use, unit: Unit, facts: Facts) -> bool:
    """Whether an import may not be reached where a name is used, as a condition on the old package holds no more."""
    branches = [
        node
        for node in unit.ancestors(item.statement)
        if isinstance(node, ast.If | ast.ExceptHandler)
    ]
    asked = [
        node
        for node in branches
        if isinstance(node, ast.ExceptHandler) or not _asks_of_others(node.test, facts)
    ]
    inside = set(unit.ancestors(use.node))
    return any(node not in inside for node in asked)


def _asks_of_others(test: ast.expr, facts: Facts) -> bool:
    """Whether a condition is one on what is outside of the project, and not on Flax, such as the version of Python."""
    names = [node for node in ast.walk(test) if isinstance(node, ast.Name)]
    found = [facts.externals(node) for node in names]
    return all(found) and not any(
        name.partition(".")[0] == "flax" for items in found for name in items
    )
