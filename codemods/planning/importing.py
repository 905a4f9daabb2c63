"""Which imports are removed, which stay and why, and which are new."""

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
"""A word that is not an attribute."""

HOLE = re.compile(r"\{[^{}]*\}")
PLACEHOLDER = re.compile(rf"\{{({'|'.join(CHOICES)})\}}")


@dataclass
class ImportPlan:
    """The names to drop from import statements, and the statements to add.

    `kept` has the legacy imports that stay, with the reason. `origins` are where the statements
    start that bind what is replaced.
    """

    drop: list[ImportedName] = field(default_factory=list)
    add: list[Addition] = field(default_factory=list)
    kept: dict[ast.AST, tuple[Status, Refusal]] = field(default_factory=dict)
    origins: list[tuple[int, int]] = field(default_factory=list)

    @property
    def statements(self) -> list[str]:
        return [addition.statement for addition in self.add]


def plan_imports(plan: Plan) -> dict[Unit, ImportPlan]:
    """Decide on the imports of all files, once everything else is decided."""
    exports = Exports(plan, lambda unit: _removed_nodes(plan.of(unit), unit))
    return {unit: _of_file(unit, plan, exports) for unit in plan.facts.project.units}


def _of_file(unit: Unit, plan: Plan, exports: Exports) -> ImportPlan:
    result = ImportPlan()
    if not plan.of(unit):
        return result
    applied = list(_in_what_stays(plan.of(unit), unit))
    imports = plan.facts.imported(unit)
    unneeded = _unneeded(unit, plan, applied, exports, result)
    result.add += _offered_anew(unit, unneeded, exports)
    result.drop += [ImportedName(*_start(unit, item.statement), _bound(item)) for item in unneeded]
    _move(unit, applied, result)
    _add(unit, plan, applied, imports, exports, result)
    return result


def _unneeded(
    unit: Unit, plan: Plan, applied: list[Decision], exports: Exports, result: ImportPlan
) -> list[Import]:
    """The imports that nothing needs any more; the legacy ones that stay get into `result.kept`."""
    removed = exports.removed_nodes(unit)
    words = _words_of_new_code(unit, plan, applied)
    unneeded: list[Import] = []
    unused: list[Import] = []
    for item in plan.facts.imported(unit):
        is_legacy = legacy_name(item.target) is not None
        reads = loads(unit, item, plan.facts)
        # `from flax import jax_utils`, if the edits do not remove what reads it, or need it
        if not is_legacy:
            is_in_use = item.name in words or not any(node in removed for node in reads)
            if is_in_use or exports.remaining(item):
                continue
        keep = exports.kept(item)
        if keep is None:
            (unneeded if reads else unused).append(item)
        elif is_legacy:
            result.kept[item.statement] = keep
    # Names that nobody uses are removed with their statement, and stay with it.
    unneeded += [
        item
        for item in unused
        if item.statement not in result.kept or _mentioned_elsewhere(item, plan)
    ]
    return unneeded


def _words_of_new_code(unit: Unit, plan: Plan, applied: list[Decision]) -> set[str]:
    """The words that new code has, so that imports of these are not removed."""
    found: set[str] = set()
    for decision in applied:
        expressions = (plan.names[unit][key].expression for key in _keys(decision))
        found.update(expression.partition(".")[0] for expression in expressions)
        found.update(_words(decision))
    return found


def _offered_anew(unit: Unit, unneeded: list[Import], exports: Exports) -> Iterator[Addition]:
    """The imports of what replaces the legacy names that a file offers to others."""
    offered: dict[str, dict[str, ast.stmt]] = {}
    for item in unneeded:
        found = exports.exported(item)
        if found is not None and found[0]:
            offered.setdefault(found[0], {})[found[1]] = item.statement
    for module, names in offered.items():
        near = _start(unit, next(iter(names.values())))
        yield Addition(f"from {module} import {', '.join(sorted(names))}", near)


def _move(unit: Unit, applied: list[Decision], result: ImportPlan) -> None:
    """Replace the imports of names that are in another module today."""
    moved: dict[tuple[tuple[int, int], str], list[str]] = {}
    for decision in applied:
        edit, node = decision.edit, decision.use.node
        # from jax import tree_map, which becomes `from jax.tree_util import tree_map`
        if not isinstance(edit, edits.MoveImport):
            continue
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        start = _start(unit, node)
        result.drop.append(ImportedName(*start, edit.bound))
        if edit.statement:
            head, word, name = edit.statement.rpartition("import ")
            moved.setdefault((start, f"{head}{word}"), []).append(name)
    for (start, head), names in moved.items():
        result.add.append(Addition(f"{head}{', '.join(dict.fromkeys(names))}", start))


def _start(unit: Unit, statement: ast.stmt) -> tuple[int, int]:
    return unit.span(statement)[:2]


def _in_what_stays(decisions: Iterable[Decision], unit: Unit) -> Iterator[Decision]:
    """The decisions that change the file.

    Steps that are read in statements that are removed are no such change; everything else there
    may have been moved.
    """
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


def _removed_nodes(decisions: Iterable[Decision], unit: Unit) -> set[ast.AST]:
    """The nodes that the edits remove: the names of legacy classes, but not their arguments."""
    removed: set[ast.AST] = set()
    for decision in decisions:
        if decision.applies and decision.use.kind != "import":
            removed.update(_removed_by(decision, unit))
    return removed


def _removed_by(decision: Decision, unit: Unit) -> Iterator[ast.AST]:
    """The nodes that one edit removes."""
    node = decision.use.node
    match decision.edit:
        case edits.Replace(template=template) | edits.Spread(templates=template) if (
            edits.IT in template
        ):
            return
        # jax.tree_map(f, tree): of a removed name, all but the holes of the template
        case edits.Replace(holes=holes, span=span) if decision.use.kind == "removed" and isinstance(
            node, ast.expr
        ):
            call = decision.use.call
            whole = call if call is not None and unit.span(call) == span else node
            kept = [hole for _, hole in holes]
            inside = (inner for inner in ast.walk(whole) if isinstance(inner, ast.expr))
            for inner in inside:
                if not any(_is_in(inner, hole, unit) for hole in kept):
                    yield inner
        case edits.Replace(holes=(), span=span) if decision.use.kind not in (
            "removed",
            "module",
        ) and isinstance(node, ast.expr):
            inside = (inner for inner in ast.walk(node) if isinstance(inner, ast.expr))
            yield from (inner for inner in inside if _is_in(inner, span, unit))
        case _:
            for part in _removed_parts(decision, unit):
                yield from ast.walk(part)


def _removed_parts(decision: Decision, unit: Unit) -> list[ast.AST]:
    """The nodes that one edit removes with all that is in them."""
    node = decision.use.node
    called = node.func if isinstance(node, ast.Call) else node
    match decision.edit:
        case edits.RewriteCall() as edit if decision.use.kind == "removed":
            return [node, *_left_out(edit, node, unit)]
        case edits.Replace() if decision.use.kind == "module":
            return [node]
        case edits.ReplaceQuoted():
            return [*decision.use.said]
        case edits.ConvertClass() | edits.ConvertLookup():
            return [called]
        # optim.Adam(rate): the name of the class
        case edits.ConvertDefinition() | edits.TakePart() | edits.Replace() if called is not node:
            return [called]
        # @struct.dataclass
        case edits.DeriveState() if isinstance(node, ast.ClassDef):
            return [*node.decorator_list]
        case edits.ReplaceStatement(templates=()) | edits.Spread():
            return [node]
        # def train(optimizer: optim.Optimizer): a parameter that is split
        case edits.ChangeParameters(split=split) if isinstance(node, ast.FunctionDef):
            names = {one.name for one in split}
            parameters = (one for one in ast.walk(node.args) if isinstance(one, ast.arg))
            return [one for one in parameters if one.arg in names]
        case edits.RewriteCall() | edits.ChangeArguments() as edit:
            return _left_out(edit, node, unit)
    return []


def _left_out(
    edit: edits.RewriteCall | edits.ChangeArguments, node: ast.AST, unit: Unit
) -> list[ast.AST]:
    """The parts that a call has before an edit, but not after it."""
    is_call = isinstance(node, ast.Call) and unit.span(node) == edit.span
    call = node if is_call else unit.parents.get(node)
    if not isinstance(call, ast.Call) or unit.span(call) != edit.span:
        return []
    values = values_of(call)
    if isinstance(edit, edits.ChangeArguments):
        removed: list[ast.AST] = [values[index] for index in edit.dropped]
        # partial(step, optimizer=optimizer), of which only `step` is left
        if edit.is_partial and not edit.added and len(values) == 1 + len(edit.dropped):
            removed.append(call.func)
        return removed
    return _not_rewritten(edit, values, unit)


def _not_rewritten(edit: edits.RewriteCall, values: list[ast.expr], unit: Unit) -> list[ast.AST]:
    """The arguments of a rewritten call that are in no hole of its template."""
    kept = {argument.index for argument in edit.arguments}
    templates = (edit.function, edit.prelude, *(argument.template for argument in edit.arguments))
    text = " ".join(templates)
    holes = [span for _, span in edit.holes]
    sliced = [span for name, span in edit.holes if name == SLICES]
    removed: list[ast.AST] = []
    for index, value in enumerate(values):
        if index in kept or f"{{argument:{index}}}" in text:
            continue
        parts = (part for part in ast.walk(value) if isinstance(part, ast.expr))
        if not any(unit.span(part) in holes for part in parts):
            removed.append(value)
    # jax.ops.index_update(x, jax.ops.index[1:], y): the slices stay without what is indexed
    indexed = (value for value in values if isinstance(value, ast.Subscript))
    removed += [value.value for value in indexed if unit.span(value) in sliced]
    return removed


def _is_in(node: ast.expr | ast.stmt, span: Span, unit: Unit) -> bool:
    """Whether something stands within a span."""
    own = unit.span(node)
    return span[:2] <= own[:2] and own[2:] <= span[2:]


def _mentioned_elsewhere(item: Import, plan: Plan) -> bool:
    """Whether another file has the name that an import binds, and may have used it from here."""
    others = (unit for unit in plan.facts.project.units if unit is not item.unit)
    for node in (node for unit in others for node in unit.nodes):
        match node:
            case ast.Attribute(attr=name) | ast.alias(name=name) if name == item.name:
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
    """Add the imports that new code needs, each where the legacy name was bound."""
    wanted: dict[str, list[tuple[int, int] | None]] = {}
    for decision in applied:
        binding = list(_binding(decision.use, imports, plan.facts))
        result.origins += [
            _start(unit, item.statement)
            for item in binding
            if item.target == "flax" or legacy_name(item.target) is not None
        ]
        near = _near(decision.use, binding, unit, plan.facts)
        for key in _keys(decision):
            wanted.setdefault(key, []).append(near)
    for key in sorted(wanted):
        statement = plan.names[unit][key].statement
        if statement:
            places = {None} if None in wanted[key] else set(wanted[key])
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
    is_dotted = item.alias.name.startswith("flax.optim") and not item.alias.asname
    is_dropped = ImportedName(*_start(unit, item.statement), item.alias.name) in result.drop
    if not (is_dotted and is_dropped and isinstance(item.statement, ast.Import)):
        return
    others = (other for other in imports if other is not item)
    if any(other.name == "flax" and other.scope is item.scope for other in others):
        return
    if not exports.removed_nodes(unit).issuperset(loads(unit, item, plan.facts)):
        is_at_top = unit.parents.get(item.statement) is unit.tree
        near = None if is_at_top else _start(unit, item.statement)
        result.add.append(Addition("import flax", near))


def _keys(decision: Decision) -> set[str]:
    """What an edit needs imported, by the keys of `CHOICES`."""
    match decision.edit:
        # optax.adam(rate), or a composite that is written with helpers
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
    parts: Iterable[object] = ()
    if isinstance(part, tuple):
        parts = part
    elif is_dataclass(part):
        parts = vars(part).values()
    for inner in parts:
        yield from _texts(inner)


def _words(decision: Decision) -> list[str]:
    """The words of source text that an edit puts into the file unchanged."""
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
    """Whether the name is also bound in the other branch, as with `if TYPE_CHECKING:`."""
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
    # def train(optimizer: "optim.Optimizer")
    if isinstance(root, ast.Constant):
        quoted = (
            found.expression for found in facts.flow.reading.annotations if found.node is root
        )
        root = next(quoted, root)
    for node in ast.walk(root):
        if isinstance(node, ast.Name) and node in facts.flow.reading.scopes:
            scope = facts.scope(node).binding(node.id)
            for item in imports:
                if item.scope is scope and item.name in (node.id, "*"):
                    yield item


def _near(use: Use, binding: list[Import], unit: Unit, facts: Facts) -> tuple[int, int] | None:
    """The nested import statement that bound the name at a use.

    None when the new import belongs to the module's top level.
    """
    nested = [
        item
        for item in binding
        if _is_nested(item, unit) and not shares_its_line(unit, item.statement)
    ]
    if not nested or len(nested) < len(binding):
        return None
    if any(legacy_name(item.target) is None for item in nested):
        return None
    item = nested[0]
    is_elsewhere = _has_an_else(item, unit) or _is_on_condition(item, use, unit, facts)
    return None if is_elsewhere else _start(unit, item.statement)


def _is_on_condition(item: Import, use: Use, unit: Unit, facts: Facts) -> bool:
    """Whether an import may not be reached where a name is used.

    It is below a condition on the old package, which is not met any more.
    """
    around_use = set(unit.ancestors(use.node))
    for node in unit.ancestors(item.statement):
        if node in around_use:
            continue
        if isinstance(node, ast.ExceptHandler):
            return True
        if isinstance(node, ast.If) and not _asks_of_others(node.test, facts):
            return True
    return False


def _asks_of_others(test: ast.expr, facts: Facts) -> bool:
    """Whether a condition is on something other than Flax, such as the version of Python."""
    names = [node for node in ast.walk(test) if isinstance(node, ast.Name)]
    found = [facts.externals(node) for node in names]
    full_names = (name for items in found for name in items)
    return all(found) and not any(name.partition(".")[0] == "flax" for name in full_names)
