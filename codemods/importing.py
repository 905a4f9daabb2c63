"""Which imports go, which stay and why, and which are new."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codemods.edits import (
    ChangeArguments,
    ChangeParameters,
    ConvertClass,
    ConvertCustom,
    ConvertDefinition,
    ConvertLookup,
    DeriveState,
    MakeStatic,
    MoveImport,
    Replace,
    ReplaceQuoted,
    ReplaceStatement,
    RewriteCall,
    Spread,
    TakePart,
)
from codemods.facts import Facts
from codemods.flow.constraints import Import
from codemods.flow.modules import Span, Unit
from codemods.flow.objects import Module
from codemods.imports import Addition, ImportedName
from codemods.legacy import legacy_name
from codemods.model import Refusal, Status
from codemods.names import CHOICES
from codemods.plan import Decision, Plan
from codemods.rules import reasons
from codemods.rules.imports import shares_its_line
from codemods.uses import Use

WORD = re.compile(r"\b[^\W\d]\w*")
PLACEHOLDER = re.compile(rf"\{{({'|'.join(CHOICES)})\}}")


@dataclass
class ImportPlan:
    """Names to drop from import statements, statements to add, and the legacy imports that stay, with the reason."""

    drop: list[ImportedName] = field(default_factory=list)
    add: list[Addition] = field(default_factory=list)
    kept: dict[ast.AST, tuple[Status, Refusal]] = field(default_factory=dict)

    @property
    def statements(self) -> list[str]:
        return [addition.statement for addition in self.add]


def plan_imports(unit: Unit, plan: Plan) -> ImportPlan:
    """Decide on the imports of a file, once all else is decided."""
    result = ImportPlan()
    decisions = plan.of(unit)
    gone = _gone(decisions, unit)
    applied = [decision for decision in decisions if decision.applies and decision.use.kind != "import"]
    imports = plan.facts.imported(unit)
    said = {plan.names[unit][key].expression.partition(".")[0] for decision in applied for key in _keys(decision)}
    said |= {word for decision in applied for word in _words(decision)}
    unused: list[Import] = []
    for item in imports:
        legacy = legacy_name(item.target) is not None
        used = _loads(unit, item, plan.facts)
        # Of a quoted annotation only the names from flax go.
        kept_words = item.target.partition(".")[0] != "flax"
        remaining = [node for node in used if node not in gone or (kept_words and isinstance(node, ast.Constant))]
        if not legacy and (item.name in said or not used or remaining or not any(node in gone for node in used)):
            continue
        keep = _keep(item, remaining, used, decisions, plan)
        if keep is None and not used:
            unused.append(item)
        elif keep is None:
            result.drop.append(ImportedName(*_start(unit, item.statement), _bound(item)))
        elif legacy:
            result.kept[item.statement] = keep
    # Names that nobody uses go with their statement, and stay with it.
    going = (item for item in unused if item.statement not in result.kept or _mentioned_elsewhere(item, plan))
    result.drop += [ImportedName(*_start(unit, item.statement), _bound(item)) for item in going]
    for decision in applied:
        if isinstance(decision.edit, MoveImport) and isinstance(decision.use.node, ast.ImportFrom):
            start = _start(unit, decision.use.node)
            result.drop.append(ImportedName(*start, decision.edit.bound))
            result.add.append(Addition(decision.edit.statement, start))
    _add(unit, plan, applied, imports, result)
    return result


def _start(unit: Unit, statement: ast.stmt) -> tuple[int, int]:
    line, column, _, _ = unit.span(statement)
    return line, column


def _bound(item: Import) -> str:
    if item.name == "*":
        return "*"
    return item.alias.asname or item.alias.name


def _gone(decisions: Iterable[Decision], unit: Unit) -> set[ast.AST]:
    """The nodes that the edits remove: the names of legacy classes, not what they were given."""
    gone: set[ast.AST] = set()
    for decision in decisions:
        node = decision.use.node
        if not decision.applies or decision.use.kind == "import":
            continue
        match decision.edit:
            case ConvertDefinition() | TakePart() if isinstance(node, ast.Call):
                gone.update(ast.walk(node.func))
            case Replace(holes=(), span=span, template=template) if (
                isinstance(node, ast.expr) and "{it}" not in template
            ):
                gone.update(
                    inner for inner in ast.walk(node) if isinstance(inner, ast.expr) and _is_in(inner, span, unit)
                )
            case ReplaceQuoted() | ConvertClass() | ConvertLookup():
                gone.update(ast.walk(node.func if isinstance(node, ast.Call) else node))
            case Replace(template=template) if isinstance(node, ast.Call) and "{it}" not in template:
                gone.update(ast.walk(node.func))
            case DeriveState() if isinstance(node, ast.ClassDef):
                gone.update(inner for one in node.decorator_list for inner in ast.walk(one))
            case ReplaceStatement(templates=()):
                gone.update(ast.walk(node))
            case Spread(templates=templates) if "{it}" not in templates:
                gone.update(ast.walk(node))
            case ChangeParameters(split=split) if isinstance(node, ast.FunctionDef):
                names = {one.name for one in split}
                arguments = (
                    inner for inner in ast.walk(node.args) if isinstance(inner, ast.arg) and inner.arg in names
                )
                gone.update(inner for argument in arguments for inner in ast.walk(argument))
            case RewriteCall() | ChangeArguments():
                gone.update(_left_out(decision.edit, node, unit))
            case _:
                pass
    return gone


def _left_out(edit: RewriteCall | ChangeArguments, node: ast.AST, unit: Unit) -> Iterator[ast.AST]:
    """What a call has before an edit, and not after it."""
    call = node if isinstance(node, ast.Call) and unit.span(node) == edit.span else unit.parents.get(node)
    if not isinstance(call, ast.Call) or unit.span(call) != edit.span:
        return
    values = [*call.args, *(word.value for word in call.keywords)]
    if isinstance(edit, ChangeArguments):
        for index in edit.dropped:
            yield from ast.walk(values[index])
        if edit.is_partial and not edit.added and len(values) == 1 + len(edit.dropped):
            yield from ast.walk(call.func)
        return
    kept = {argument.index for argument in edit.arguments}
    said = " ".join((edit.function, edit.prelude, *(argument.template for argument in edit.arguments)))
    holes = [span for _, span in edit.holes]
    for index, value in enumerate(values):
        inner = [part for part in ast.walk(value) if isinstance(part, ast.expr) and unit.span(part) in holes]
        if index not in kept and f"{{argument:{index}}}" not in said and not inner:
            yield from ast.walk(value)


def _is_in(node: ast.expr, span: Span, unit: Unit) -> bool:
    """Whether an expression stands within a span."""
    own = unit.span(node)
    return span[:2] <= own[:2] and own[2:] <= span[2:]


def _loads(unit: Unit, item: Import, facts: Facts) -> list[ast.AST]:
    """Every place in the file that reads an imported name, quoted annotations included."""
    found: list[ast.AST] = []
    for node in unit.nodes:
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load | ast.Del)
            and node in facts.flow.reading.scopes
        ):
            named = node.id == item.name or (item.name == "*" and legacy_name(f"{item.target}.{node.id}"))
            if named and facts.scope(node).binding(node.id) is item.scope:
                found.append(node)
    for annotation in facts.flow.reading.annotations:
        quoted = annotation.unit is unit and annotation.node is not annotation.expression
        if quoted and any(
            isinstance(word, ast.Name) and word.id == item.name for word in ast.walk(annotation.expression)
        ):
            found.append(annotation.node)
    return found


def _keep(
    item: Import, remaining: list[ast.AST], used: list[ast.AST], decisions: Iterable[Decision], plan: Plan
) -> tuple[Status, Refusal] | None:
    """Why an import stays; None if it can go."""
    unit = item.unit
    own = next((decision for decision in decisions if decision.use.node is item.statement), None)
    if own is not None and own.refusal is not None:
        return own.status, own.refusal
    if item.target == "flax.optim" and item.alias.name == "flax.optim" and not item.alias.asname:
        remaining = [node for node in remaining if _is_legacy_chain(node, unit, plan.facts)]
    if remaining:
        return _needed(remaining, decisions, unit)
    if not _exported(item, bool(used), plan):
        return None
    return "unresolved", reasons.name_kept(
        f"`{item.name}` may be imported from this module by others.", "Export what replaces it, or remove the import."
    )


def _is_legacy_chain(node: ast.AST, unit: Unit, facts: Facts) -> bool:
    parent = unit.parents.get(node)
    return isinstance(parent, ast.Attribute) and any(legacy_name(name) is not None for name in facts.externals(parent))


def _needed(remaining: list[ast.AST], decisions: Iterable[Decision], unit: Unit) -> tuple[Status, Refusal]:
    lines = sorted({getattr(node, "lineno", 0) for node in remaining})
    where = ", ".join(unit.place(line) for line in lines[:3])
    inside = [decision for decision in decisions if any(node in set(ast.walk(decision.use.node)) for node in remaining)]
    status: Status = "suppressed" if inside and all(found.status == "suppressed" for found in inside) else "unresolved"
    return status, reasons.name_kept(f"{where} still needs this import.", "Migrate what needs it first.")


def _mentioned_elsewhere(item: Import, plan: Plan) -> bool:
    """Whether another file says the name that an import binds, so that it may have been in use there."""
    return any(
        item.name == (node.attr if isinstance(node, ast.Attribute) else node.name)
        for unit in plan.facts.project.units
        if unit is not item.unit
        for node in unit.nodes
        if isinstance(node, ast.Attribute | ast.alias)
    )


def _exported(item: Import, used: bool, plan: Plan) -> bool:
    unit = item.unit
    if item.scope.parent is not None:
        return False
    listed = any(
        isinstance(node, ast.Assign | ast.AugAssign | ast.Expr)
        and any(isinstance(name, ast.Name) and name.id == "__all__" for name in ast.walk(node))
        and any(isinstance(word, ast.Constant) and word.value == item.name for word in ast.walk(node))
        for node in unit.tree.body
    )
    line = unit.code.split("\n")[item.statement.lineno - 1]
    silent = not used and (unit.is_package or "noqa" in line)
    exported = item.alias.asname == item.alias.name
    return listed or silent or exported or _imported_elsewhere(item, plan) or _read_elsewhere(item, plan)


def _imported_elsewhere(item: Import, plan: Plan) -> bool:
    place = ("variable", item.scope, item.name)
    return any(
        binding[1].unit is not item.unit and not _idle_star(binding[1].unit, binding[2], plan)
        for binding in plan.facts.flow.solver.targets(place)
        if isinstance(binding, tuple) and binding[0] == "variable"
    )


def _idle_star(unit: Unit, name: str, plan: Plan) -> bool:
    """Whether a module has a name from a star import alone and does not use it."""
    named = any(
        (alias.asname or alias.name) == name
        for node in unit.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )
    gone = _gone(plan.of(unit), unit)
    used = any(isinstance(node, ast.Name) and node.id == name and node not in gone for node in unit.nodes)
    return not (named or used or unit.is_package)


def _read_elsewhere(item: Import, plan: Plan) -> bool:
    """Whether another file reads the name as an attribute of this module, and goes on doing so."""
    return any(
        node.attr == item.name
        and unit is not item.unit
        and any(isinstance(found, Module) and found.unit is item.unit for found in plan.facts.objects(node.value))
        and node not in _gone(plan.of(unit), unit)
        for unit, node in plan.facts.flow.reading.attributes
    )


def _add(unit: Unit, plan: Plan, applied: list[Decision], imports: list[Import], result: ImportPlan) -> None:
    """The imports that the new code needs, each where the legacy name that it replaces was bound."""
    wanted: dict[str, list[tuple[int, int] | None]] = {}
    for decision in applied:
        near = _near(decision.use, imports, unit, plan.facts)
        for key in _keys(decision):
            wanted.setdefault(key, []).append(near)
    for key in sorted(wanted):
        statement = plan.names[unit][key].statement
        if statement:
            places = {None} if None in wanted[key] else set(wanted[key])
            result.add.extend(Addition(statement, near) for near in sorted(places, key=lambda near: near or (0, 0)))
    for item in imports:
        dotted = (
            item.alias.name.startswith("flax.optim")
            and not item.alias.asname
            and isinstance(item.statement, ast.Import)
        )
        dropped = ImportedName(*_start(unit, item.statement), item.alias.name) in result.drop
        others = [
            other for other in imports if other is not item and other.name == "flax" and other.scope is item.scope
        ]
        if (
            dotted
            and dropped
            and not others
            and any(node not in _gone(applied, unit) for node in _loads(unit, item, plan.facts))
        ):
            top = unit.parents.get(item.statement) is unit.tree
            result.add.append(Addition("import flax", None if top else _start(unit, item.statement)))


def _keys(decision: Decision) -> set[str]:
    edit = decision.edit
    match edit:
        case ConvertDefinition():
            return set() if edit.optimizer == "MultiOptimizer" or edit.optimizer == "WeightNorm" else {"optax"}
        case DeriveState():
            return {"TrainState"}
        case Replace(template=template):
            texts = [template]
        case RewriteCall(function=function, arguments=arguments):
            texts = [function, edit.prelude, *(argument.template for argument in arguments)]
        case ConvertCustom(rate=rate):
            return set() if rate is None else {"optax"}
        case ReplaceQuoted(words=words):
            texts = [template for _, template in words]
        case MakeStatic():
            return set() if isinstance(decision.use.node, ast.Call) else {"partial"}
        case ReplaceStatement(templates=templates) | Spread(templates=templates):
            texts = list(templates)
        case ChangeParameters(split=split):
            texts = [template for one in split for _, template in one.parameters]
        case _:
            texts = []
    supports = getattr(edit, "supports", ())
    texts.extend(support.source for support in supports)
    return {match[1] for text in texts for match in PLACEHOLDER.finditer(text)}


def _words(decision: Decision) -> list[str]:
    """The words of source text that an edit puts into the file as it is."""
    match decision.edit:
        case ConvertDefinition(rate=rate, link=link):
            return WORD.findall(f"{rate} {link}")
        case ChangeArguments(added=added):
            return [word for _, text in added for word in WORD.findall(text)]
        case Replace(template=text, holes=()):
            return WORD.findall(text)
        case _:
            return []


def _has_an_else(item: Import, unit: Unit) -> bool:
    """Whether the name is bound in the other branch too, as with `if TYPE_CHECKING:`, so that it is there in any case."""
    branch = unit.parents.get(item.statement)
    return isinstance(branch, ast.If) and any(
        isinstance(node, ast.Name) and node.id == item.name and isinstance(node.ctx, ast.Store)
        for other in branch.orelse
        for node in ast.walk(other)
    )


def _near(use: Use, imports: list[Import], unit: Unit, facts: Facts) -> tuple[int, int] | None:
    """The nested import statement that bound the legacy name at a use; None when the module's top level did."""
    root: ast.AST = use.node.func if isinstance(use.node, ast.Call) else use.node
    if isinstance(root, ast.Constant):
        quoted = (found.expression for found in facts.flow.reading.annotations if found.node is root)
        root = next(quoted, root)
    for node in ast.walk(root):
        if isinstance(node, ast.Name) and node in facts.flow.reading.scopes:
            binding = facts.scope(node).binding(node.id)
            found = [item for item in imports if item.scope is binding and item.name in (node.id, "*")]
            nested = [
                item
                for item in found
                if unit.parents.get(item.statement) is not unit.tree and not shares_its_line(unit, item.statement)
            ]
            if nested and len(nested) == len(found) and legacy_name(nested[0].target) is not None:
                return None if _has_an_else(nested[0], unit) else _start(unit, nested[0].statement)
    return None
