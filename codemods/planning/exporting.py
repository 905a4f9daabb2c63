"""Whether an imported legacy name has to stay in a file, for itself or for others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import DEFINITIONS, legacy_name
from codemods.analysis.naming import last_word
from codemods.analysis.removed_names import imported_name
from codemods.analysis.uses import Use
from codemods.inference.objects import External, Module
from codemods.inference.reading import Binding
from codemods.inference.recorded import Import, PassedOn
from codemods.inference.scopes import Scope
from codemods.messages import joined, message
from codemods.model import Refusal, Status
from codemods.optimizers.interface import has_interface, interface_of
from codemods.planning.decisions import Decision, Plan
from codemods.rules import reasons
from codemods.sources.modules import Unit
from codemods.sources.parsing import parse
from codemods.sources.text import LINE_END

OFFERED = {
    "Optimizer": "flax.training.train_state.TrainState",
    "OptimizerDef": "optax.GradientTransformation",
    "OptimizerState": "optax.OptState",
}
"""What replaces the legacy types that a module offers to others."""

INERT = (
    ast.Import
    | ast.ImportFrom
    | ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.ClassDef
    | ast.Pass
)
"""Statements that have no effect when a module is imported but to bind names."""


ON_PURPOSE = re.compile(r"#\s*noqa(?!:)|#\s*noqa:.*\bF401\b", re.IGNORECASE)
"""The comment on an import that linters are not to call unused."""


class Reason(NamedTuple):
    """How an import stays, why, and for the sake of which decision if what needs it stays, too."""

    status: Status
    refusal: Refusal
    cause: Decision | None = None


class Exports:
    """The legacy imports of a project that stay, each with the reason."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.facts = plan.facts
        self._removed: dict[Unit, set[ast.AST]] = {}
        self._known: dict[ast.alias, Reason | None] = {}
        self._asked: set[tuple[Scope, str]] = set()

    def applied(self, unit: Unit) -> Iterator[Decision]:
        """The decisions that apply in a file, other than those on imports."""
        for decision in self.plan.of(unit):
            if decision.applies and decision.use.kind != "import":
                yield decision

    def removed_nodes(self, unit: Unit) -> set[ast.AST]:
        """The nodes that edits remove: the names of legacy classes, but not their arguments."""
        if unit not in self._removed:
            edits = ((one.edit, one.use) for one in self.applied(unit))
            gone = (edit.gone(use) for edit, use in edits if edit is not None)
            self._removed[unit] = {*chain.from_iterable(gone)}
        return self._removed[unit]

    def remaining(self, item: Import) -> list[ast.AST]:
        """The places that go on reading an imported name."""
        removed = self.removed_nodes(item.unit)
        reads = loads(item.unit, item, self.facts)
        return [node for node in reads if node not in removed]

    def reason_to_stay(self, item: Import) -> Reason | None:
        """Why an import stays; None if it can be removed."""
        if item.alias not in self._known:
            # imports in a circle do not keep one another
            self._known[item.alias] = None
            self._known[item.alias] = self._reason(item)
        return self._known[item.alias]

    def _reason(self, item: Import) -> Reason | None:
        unit = item.unit
        decisions = self.plan.of(unit)
        of_statement = (one for one in decisions if one.use.node is item.statement)
        own = next((one for one in of_statement if _is_of(one.use, item)), None)
        if own is not None and own.refusal is not None:
            return Reason(own.status, own.refusal)
        remaining = self._needing(item, decisions)
        if remaining:
            return _needed(remaining, decisions, unit)
        if self._is_export(item):
            # what replaces it is offered in its place
            if self._exported_anew(item) is not None:
                return None
            is_star = item.name == "*"
            names = f"The names of `{item.target}`" if is_star else f"`{item.name}`"
            refusal = reasons.name_needed(
                f"{names} may be imported from this module by others.",
                "Export what replaces it, or remove the import.",
            )
        elif not self._only_for_names(item):
            refusal = reasons.name_needed(
                "This import also runs the module that it imports from.",
                "Import the module itself in its place.",
            )
        else:
            return None
        return Reason("unresolved", refusal)

    def _needing(self, item: Import, decisions: Iterable[Decision]) -> list[ast.AST]:
        """The places of its file that still need an import."""
        remaining = self.remaining(item)
        # `import flax.optim` also binds `flax`: only what reads `flax.optim` needs it
        is_whole = item.target == item.alias.name == "flax.optim"
        if is_whole and not item.alias.asname:
            remaining = [
                node
                for node in remaining
                if _is_legacy_chain(node, item.unit, self.facts)
            ]
        left = [one.use for one in decisions if not one.applies]
        # eval("optim." + name)
        remaining += [use.node for use in left if use.kind == "in_text"]
        # make = globals()[name], or self.optim of an import in a class, where anything stays
        in_class = isinstance(item.scope.node, ast.ClassDef)
        if in_class or None in self.facts.looked_up(item.unit):
            remaining += [
                use.node
                for use in left
                if use.kind != "import" and use.evidence != "likely"
            ]
        return remaining

    def exported(self, item: Import) -> tuple[str, str] | None:
        """From where a module imports the replacement of a legacy name that it offered, and how.

        None if it offers none, or need not. What is in the module itself is imported from nowhere,
        `""`. Of what only is there for others, all that is in view has changed. Where nothing
        replaces a name, it has to stay.
        """
        if self.remaining(item) or self.reason_to_stay(item) is not None:
            return None
        return self._exported_anew(item) if self._is_export(item) else None

    def _exported_anew(self, item: Import) -> tuple[str, str] | None:
        name = legacy_name(item.target)
        if not isinstance(name, str) or item.name == "*":
            return None
        if not self._is_migrated(item.unit):
            return None
        own_class = self._class_for(item, name)
        if own_class is not None:
            return own_class
        # from flax.training.train_state import TrainState as Optimizer
        source, _, replacement = OFFERED.get(name, "").rpartition(".")
        if not source:
            return None
        return source, _as(replacement, item.name)

    def _class_for(self, item: Import, name: str) -> tuple[str, str] | None:
        """From where a module imports the class with the interface of a legacy one, and how."""
        unit = item.unit
        shared = self.plan.shared
        if not self.plan.options.selects("FO706"):
            return None
        supports = {support.name: support for support in interface_of(name)}
        found = shared.module(unit) if supports else None
        if found is not None:
            place, module = found
            shared.modules[place].update(supports)
            *_, own_name = supports
            return module, _as(own_name, item.name)
        imports = self.facts.imported(unit)
        legacy = [one for one in imports if legacy_name(one.target) is not None]
        # what only the comment of a linter says shows nobody who needs a class
        if not any(map(self._is_offered, legacy)):
            return None
        # the module has the class itself, unless it binds the name to something else too
        if not has_interface(name) or unit.names_bound[item.name] > 1:
            return None
        shared.given[unit].update(supports)
        if item.name != name:
            shared.called[unit][name] = item.name
        return "", item.name

    def _is_migrated(self, unit: Unit) -> bool:
        """Whether only imports of a file's programs are still legacy."""
        program = self.facts.together(unit)
        for decision in self.plan.decisions:
            use = decision.use
            if decision.applies or use.kind == "import":
                continue
            if use.unit.path in program:
                return False
        return True

    def _is_export(self, item: Import) -> bool:
        """Whether a name is imported for other files, as far as can be seen."""
        if item.scope.parent is not None:
            return False
        # from flax.optim import Adam as Adam
        is_renamed_as_itself = item.alias.asname == item.alias.name
        on_purpose = is_renamed_as_itself or self._is_unused_on_purpose(item)
        return on_purpose or self._is_offered(item)

    def _is_unused_on_purpose(self, item: Import) -> bool:
        """Whether a comment for linters says that a name is for others, and none is in view."""
        lines = LINE_END.split(item.unit.code)
        said = (lines[node.lineno - 1] for node in (item.statement, item.alias))
        if not any(map(ON_PURPOSE.search, said)):
            return False
        takers = (passed.alias.name for passed in self.facts.takers[item.scope])
        is_taken = not {item.name, "*"}.isdisjoint(takers)
        return not is_taken and not loads(item.unit, item, self.facts)

    def _is_offered(self, item: Import) -> bool:
        """Whether something shows for whom a name is imported: a package's users, or a file."""
        if item.unit.is_package and not loads(item.unit, item, self.facts):
            return True
        names = _names_of(item, self.facts)
        return any(self._leaves(item.scope, name) for name in names)

    def _leaves(self, scope: Scope, name: str) -> bool:
        """Whether other files need a name of a module."""
        return (
            _lists(scope.unit, name)
            or self._taken(scope, name)
            or self._read_elsewhere(scope.unit, name)
            or self._named_out_of_view(scope.unit, name)
            or self._looked_up(scope, name)
        )

    def _looked_up(self, scope: Scope, name: str) -> bool:
        """Whether a name of a module may be read by a key; any key may be that of a class."""
        items = self.facts.flow.solver.at(("variable", scope, name))
        names = (item.name for item in items if isinstance(item, External))
        is_class = any(legacy_name(one) in DEFINITIONS for one in names)
        keys = self.facts.looked_up(scope.unit)
        return name in keys or (is_class and None in keys)

    def _named_out_of_view(self, owner: Unit, name: str) -> bool:
        """Whether a file that is not read takes the name from a module."""
        project = self.facts.project
        importers = self.facts.importers_of(owner) & self.facts.others.keys()
        importers -= {unit.path for unit in project.around}
        having = (path for path in importers if project.may_have(path, name))
        return any(_takes(self.facts.others[path], owner, name) for path in having)

    def _taken(self, scope: Scope, name: str) -> bool:
        """Whether an import in another file takes a name from a module, and stays."""
        # two modules with a star import of one another
        if (scope, name) in self._asked:
            return False
        self._asked.add((scope, name))
        takers = self.facts.takers[scope]
        taking = (passed for passed in takers if passed.alias.name in (name, "*"))
        taken = any(self._stays(passed, name) for passed in taking)
        self._asked.remove((scope, name))
        return taken

    def _stays(self, passed: PassedOn, name: str) -> bool:
        """Whether an import in another file stays; of a star, whether the name is needed."""
        unit = passed.unit
        if passed.name == "*":
            removed = self.removed_nodes(unit)
            reads = _reads(unit, passed, name, self.facts)
            if any(node not in removed for node in reads):
                return True
            return self._leaves(passed.scope, name)
        imported = self.facts.imported(unit)
        items = [item for item in imported if item.alias is passed.alias]
        # only imports of legacy names are ever removed, and only where questions are asked
        if not items or unit in self.facts.project.around:
            return True
        return any(self.reason_to_stay(item) is not None for item in items)

    def _read_elsewhere(self, owner: Unit, name: str) -> bool:
        """Whether another file reads the name as an attribute of a module, and goes on doing so."""
        engine = self.facts.flow.engine
        for node, value in engine.index.attributes_read.get(name, ()):
            unit = engine.scopes[node].unit
            if unit is owner or node in self.removed_nodes(unit):
                continue
            # import train; train.Adam(…)
            for item in self.facts.objects(value):
                if isinstance(item, Module) and item.unit is owner:
                    return True
        return False

    def _only_for_names(self, item: Import) -> bool:
        """Whether an import only binds names, or its statement stays for another name."""
        imported = self.facts.imported(item.unit)
        same = [one for one in imported if one.statement is item.statement]
        if len(item.statement.names) > len(same):
            return True
        for passed in self.facts.flow.reading.passed_on:
            if passed.alias is not item.alias:
                continue
            if any(_calls(source.unit) for source in passed.sources):
                return False
        return True


def _takes(code: str, module: Unit, name: str) -> bool:
    """Whether code has a name from a module: `from module import name`, or `module.name`."""
    path = PurePosixPath(module.path)
    word = path.parent.name if module.is_package else path.stem
    try:
        nodes = [*ast.walk(parse(code))]
    # it cannot run
    except SyntaxError:
        return False
    except (RecursionError, MemoryError):
        return True
    bound = {word}
    for node in nodes:
        for alias in (
            node.names if isinstance(node, ast.Import | ast.ImportFrom) else ()
        ):
            if alias.asname and alias.name.rpartition(".")[2] == word:
                bound.add(alias.asname)
    for node in nodes:
        match node:
            case ast.ImportFrom(module=source, names=aliases):
                of_module = (source or word).rpartition(".")[2] == word
                if of_module and any(one.name in (name, "*") for one in aliases):
                    return True
            case ast.Attribute(value=owner, attr=attr) if attr == name:
                if last_word(owner) in bound:
                    return True
    return False


def _calls(unit: Unit) -> bool:
    """Whether a module calls something when it is imported."""
    for statement in unit.tree.body:
        if isinstance(statement, INERT):
            continue
        if any(isinstance(part, ast.Call) for part in ast.walk(statement)):
            return True
    return False


def _is_of(use: Use, item: Import) -> bool:
    """Whether a use of an import statement is about this name, rather than another of it."""
    return use.kind == "import" or use.name == imported_name(item)


def _as(name: str, bound: str) -> str:
    return name if bound == name else f"{name} as {bound}"


def loads(unit: Unit, item: Import, facts: Facts) -> list[ast.AST]:
    """Every place in the file that reads an imported name, quoted annotations included."""
    found: list[ast.AST] = []
    for name in _names_of(item, facts):
        found += _reads(unit, item, name, facts)
    return found


def _names_of(item: Import, facts: Facts) -> Iterable[str]:
    """The names that an import binds; of a star, all those of the legacy module."""
    # from flax.optim import *
    if item.name == "*":
        return facts.legacy.members(item.target)
    return (item.name,)


def _is_another(item: Import | PassedOn, binding: Binding) -> bool:
    """Whether a binding is by another import, which brings nothing of what the first one brought.

    After `import flax` and `import flax.optim`, the name has both.
    """
    is_by_name = isinstance(binding.node, ast.ImportFrom)
    return is_by_name and binding.alias is not item.alias


def _reads(
    unit: Unit, item: Import | PassedOn, name: str, facts: Facts
) -> Iterable[ast.AST]:
    """The places in a file that read a name which an import of it binds."""
    scope, scopes = item.scope, facts.flow.reading.scopes
    for node in unit.nodes:
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        if node not in scopes or isinstance(node.ctx, ast.Store):
            continue
        if facts.binding(node) is not scope or not facts.finds_import(node, scope):
            continue
        # from torch import optim, behind the legacy import of that name
        reaching = facts.flow.engine.reaching.bindings(node) or ()
        if not reaching or not all(_is_another(item, one) for one in reaching):
            yield node
    # def train_step(optimizer: "optim.Optimizer")
    for annotation in facts.flow.reading.annotations:
        is_here = annotation.node in unit.parents
        if not is_here or annotation.node is annotation.expression:
            continue
        for inner in facts.with_quoted(annotation):
            for word in ast.walk(inner.expression):
                if isinstance(word, ast.Name) and word.id == name:
                    yield word


def _lists(unit: Unit, name: str) -> bool:
    """Whether a name is in the `__all__` of a module."""
    for node in unit.tree.body:
        # __all__ += ["Adam"], or `__all__.append("Adam")`
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
            continue
        parts = [*ast.walk(node)]
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        constants = (part.value for part in parts if isinstance(part, ast.Constant))
        if "__all__" in names and name in constants:
            return True
    return False


def _is_legacy_chain(node: ast.AST, unit: Unit, facts: Facts) -> bool:
    """Whether this is the `flax` of `flax.optim`."""
    parent = unit.parents.get(node)
    if not isinstance(parent, ast.Attribute):
        return False
    return any(legacy_name(name) is not None for name in facts.externals(parent))


def _parts(use: Use) -> set[ast.AST]:
    """All that a use is about, in quotes or not."""
    return set(chain.from_iterable(map(ast.walk, (use.node, *use.said))))


def _needed(
    remaining: list[ast.AST], decisions: Iterable[Decision], unit: Unit
) -> Reason:
    lines = sorted({getattr(node, "lineno", 0) for node in remaining})
    where = joined(", ", map(unit.location, lines[:3]))
    needs = "needs" if len(lines) == 1 else "need"
    inside = [one for one in decisions if not _parts(one.use).isdisjoint(remaining)]
    status: Status = "unresolved"
    # the user left all that needs it
    if inside and all(found.status == "suppressed" for found in inside):
        status = "suppressed"
    refusal = reasons.name_needed(
        message("{} still {} this import.", where, needs),
        "Migrate what needs it first.",
    )
    first = next((found for found in inside if not found.applies), None)
    if first is None:
        return Reason(status, refusal)
    return Reason(status, refusal, first.cause or first)
