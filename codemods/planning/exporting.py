"""Whether an imported legacy name has to stay in a file.

It stays for the file itself, or for others that take it from there.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.analysis.removed_names import imported_name
from codemods.analysis.uses import Use
from codemods.dataflow.bindings import bound_anywhere
from codemods.flow.objects import Module
from codemods.flow.reading import Import, PassedOn
from codemods.flow.scopes import Scope
from codemods.messages import joined, message
from codemods.model import Refusal, Status
from codemods.optimizers.interface import has_interface, interface_of
from codemods.planning.decisions import Decision, Plan
from codemods.planning.sharing import Homes
from codemods.rules import reasons
from codemods.sources.modules import Unit

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


class Reason(NamedTuple):
    """How an import stays, why, and for the sake of which decision if what needs it stays, too."""

    status: Status
    refusal: Refusal
    cause: Decision | None = None


class Exports:
    """The legacy imports of a project that stay, each with the reason.

    `removed_nodes` gives the nodes that the edits of a file remove.
    """

    def __init__(
        self, plan: Plan, removed_nodes: Callable[[Unit], set[ast.AST]]
    ) -> None:
        self.plan = plan
        self.facts = plan.facts
        self._removed_nodes = removed_nodes
        self._removed: dict[Unit, set[ast.AST]] = {}
        self._known: dict[ast.alias, Reason | None] = {}
        self._asked: set[tuple[Scope, str]] = set()

    def removed_nodes(self, unit: Unit) -> set[ast.AST]:
        if unit not in self._removed:
            self._removed[unit] = self._removed_nodes(unit)
        return self._removed[unit]

    def remaining(self, item: Import) -> list[ast.AST]:
        """The places that go on reading an imported name."""
        removed = self.removed_nodes(item.unit)
        return [
            node for node in loads(item.unit, item, self.facts) if node not in removed
        ]

    def reason_to_stay(self, item: Import) -> Reason | None:
        """Why an import stays; None if it can be removed."""
        if item.alias not in self._known:
            self._known[item.alias] = (
                None  # imports in a circle do not keep one another
            )
            self._known[item.alias] = self._reason(item)
        return self._known[item.alias]

    def _reason(self, item: Import) -> Reason | None:
        unit = item.unit
        decisions = self.plan.of(unit)
        of_item = (
            one
            for one in decisions
            if one.use.node is item.statement and _is_of(one.use, item)
        )
        own = next(of_item, None)
        if own is not None and own.refusal is not None:
            return Reason(own.status, own.refusal)
        remaining = self._needing(item, decisions)
        if remaining:
            return _needed(remaining, decisions, unit)
        if self._is_export(item):
            if self._exported_anew(item) is not None:
                return None
            return Reason(
                "unresolved",
                reasons.name_needed(
                    f"`{item.name}` may be imported from this module by others.",
                    "Export what replaces it, or remove the import.",
                ),
            )
        if not self._only_for_names(item):
            return Reason(
                "unresolved",
                reasons.name_needed(
                    "This import also runs the module that it imports from.",
                    "Import the module itself in its place.",
                ),
            )
        return None

    def _needing(self, item: Import, decisions: Iterable[Decision]) -> list[ast.AST]:
        """The places of its file that still need an import."""
        remaining = self.remaining(item)
        # `import flax.optim` also binds `flax`: only what reads `flax.optim` needs it
        is_dotted = (
            item.target == item.alias.name == "flax.optim" and not item.alias.asname
        )
        if is_dotted:
            remaining = [
                node
                for node in remaining
                if _is_legacy_chain(node, item.unit, self.facts)
            ]
        if isinstance(item.statement, ast.Import):
            remaining += [
                decision.use.node
                for decision in decisions
                if _looks_up_module(decision)
            ]
        return remaining

    def exported(self, item: Import) -> tuple[str, str] | None:
        """From where a module imports the replacement of a legacy name that it offered, and how.

        None if it offers none, or need not. What is in the module itself is imported from nowhere,
        `""`. Of what only is there for others, all that is in view has changed. Where nothing
        replaces a name, it has to stay.
        """
        offers = (
            not self.remaining(item)
            and self.reason_to_stay(item) is None
            and self._is_export(item)
        )
        return self._exported_anew(item) if offers else None

    def _exported_anew(self, item: Import) -> tuple[str, str] | None:
        name = legacy_name(item.target)
        if (
            not isinstance(name, str)
            or item.name == "*"
            or not self._is_migrated(item.unit)
        ):
            return None
        given, called = self.plan.shared.given, self.plan.shared.called
        supports = interface_of(name) if self.plan.options.selects("FO706") else ()
        home = self._home(item.unit) if supports else None
        is_here = home in (None, item.unit)
        # the module has the class with the interface itself
        if is_here and has_interface(name) and not self._is_bound_otherwise(item):
            given[item.unit].update((support.name, support) for support in supports)
            if item.name != name:
                called[item.unit][name] = item.name
            return "", item.name
        # another file has it
        if home is not None:
            module = Homes(self.facts).module(home, item.unit)
            if module is not None and item.unit.path not in self.facts.imported_by(
                home
            ):
                given[home].update((support.name, support) for support in supports)
                own_name = supports[-1].name
                return module, _as(
                    called.get(home, {}).get(own_name, own_name), item.name
                )
        # from flax.training.train_state import TrainState as Optimizer
        source, _, replacement = OFFERED.get(name, "").rpartition(".")
        return (source, _as(replacement, item.name)) if source else None

    def _is_bound_otherwise(self, item: Import) -> bool:
        """Whether a file binds an imported name to something else too, or imports it twice."""
        return bound_anywhere(item.unit)[item.name] > 1

    def _home(self, unit: Unit) -> Unit | None:
        """The file of a program that has classes for others."""
        program = self.facts.together(unit)
        for home, given in self.plan.shared.given.items():
            if given and home.path in program:
                return home
        return None

    def _is_migrated(self, unit: Unit) -> bool:
        """Whether only imports of a file's programs are still legacy."""
        program = self.facts.together(unit)
        left = (
            one
            for one in self.plan.decisions
            if not one.applies and one.use.kind != "import"
        )
        return not any(one.use.unit.path in program for one in left)

    def _is_export(self, item: Import) -> bool:
        """Whether a name is imported for other files, as far as can be seen."""
        unit = item.unit
        if item.scope.parent is not None:
            return False
        line = unit.code.split("\n")[item.statement.lineno - 1]
        reads = loads(unit, item, self.facts)
        # from flax.optim import Adam, with a comment for the linter
        is_unused = not reads and (unit.is_package or "noqa" in line)
        # from flax.optim import Adam as Adam
        on_purpose = item.alias.asname == item.alias.name
        names = (
            self.facts.legacy.members(item.target) if item.name == "*" else (item.name,)
        )
        return (
            is_unused
            or on_purpose
            or any(self._leaves(item.scope, name) for name in names)
        )

    def _leaves(self, scope: Scope, name: str) -> bool:
        """Whether other files need a name of a module."""
        return (
            _lists(scope.unit, name)
            or self._taken(scope, name)
            or self._read_elsewhere(scope.unit, name)
        )

    def _taken(self, scope: Scope, name: str) -> bool:
        """Whether an import in another file takes a name from a module, and stays."""
        if (scope, name) in self._asked:
            return False
        self._asked.add((scope, name))
        taken = any(
            self._stays(passed, name)
            for passed in self.facts.takers[scope]
            if passed.alias.name in (name, "*")
        )
        self._asked.remove((scope, name))
        return taken

    def _stays(self, passed: PassedOn, name: str) -> bool:
        """Whether an import from another file of the project stays.

        Of a star, whether the name that it brought is read or passed on.
        """
        if passed.name == "*":
            removed = self.removed_nodes(passed.unit)
            read = any(
                node not in removed
                for node in _reads(passed.unit, passed.scope, name, self.facts)
            )
            return read or self._leaves(passed.scope, name)
        items = (
            item
            for item in self.facts.imported(passed.unit)
            if item.alias is passed.alias
        )
        return any(self.reason_to_stay(item) is not None for item in items)

    def _read_elsewhere(self, owner: Unit, name: str) -> bool:
        """Whether another file reads the name as an attribute of a module, and goes on doing so."""
        for unit, node in self._attributes[name]:
            if unit is owner or node in self.removed_nodes(unit):
                continue
            objects = self.facts.objects(node.value)
            if any(isinstance(item, Module) and item.unit is owner for item in objects):
                return True
        return False

    @cached_property
    def _attributes(self) -> dict[str, list[tuple[Unit, ast.Attribute]]]:
        found: dict[str, list[tuple[Unit, ast.Attribute]]] = defaultdict(list)
        for unit, node in self.facts.flow.reading.attributes:
            found[node.attr].append((unit, node))
        return found

    def _only_for_names(self, item: Import) -> bool:
        """Whether an import only binds names.

        The module has no effect when it is imported, or the statement stays for another name.
        """
        same = [
            one
            for one in self.facts.imported(item.unit)
            if one.statement is item.statement
        ]
        if len(item.statement.names) > len(same):
            return True
        passed_on = self.facts.flow.reading.passed_on
        scopes = (
            scope
            for one in passed_on
            if one.alias is item.alias
            for scope in one.sources
        )
        statements = (node for scope in scopes for node in scope.unit.tree.body)
        running = (node for node in statements if not isinstance(node, INERT))
        return not any(
            isinstance(part, ast.Call) for node in running for part in ast.walk(node)
        )


def _is_of(use: Use, item: Import) -> bool:
    """Whether a use of an import statement is about this name, rather than another of it."""
    return use.kind == "import" or use.name == imported_name(item)


def _as(name: str, bound: str) -> str:
    return name if bound == name else f"{name} as {bound}"


def loads(unit: Unit, item: Import, facts: Facts) -> list[ast.AST]:
    """Every place in the file that reads an imported name, quoted annotations included."""
    names = facts.legacy.members(item.target) if item.name == "*" else (item.name,)
    return [node for name in names for node in _reads(unit, item.scope, name, facts)]


def _reads(unit: Unit, scope: Scope, name: str, facts: Facts) -> Iterable[ast.AST]:
    """The places in a file that read a name which a scope of it binds."""
    scopes = facts.flow.reading.scopes
    for node in unit.nodes:
        if not isinstance(node, ast.Name) or node.id != name or node not in scopes:
            continue
        if not isinstance(node.ctx, ast.Store) and scopes[node].binding(name) is scope:
            yield node
    # def train_step(optimizer: "optim.Optimizer")
    for annotation in facts.flow.reading.annotations:
        is_quoted = (
            annotation.node in unit.parents
            and annotation.node is not annotation.expression
        )
        if not is_quoted:
            continue
        for inner in facts.with_quoted(annotation):
            for word in ast.walk(inner.expression):
                if isinstance(word, ast.Name) and word.id == name:
                    yield word


def _lists(unit: Unit, name: str) -> bool:
    """Whether a name is in the `__all__` of a module."""
    for node in unit.tree.body:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
            parts = [*ast.walk(node)]
            is_all = any(
                isinstance(part, ast.Name) and part.id == "__all__" for part in parts
            )
            if is_all and any(
                isinstance(part, ast.Constant) and part.value == name for part in parts
            ):
                return True
    return False


def _looks_up_module(decision: Decision) -> bool:
    """Whether a file still asks for `sys.modules["flax.optim"]`, so that it has to be imported."""
    return (
        decision.use.kind == "module"
        and not decision.applies
        and isinstance(decision.use.node, ast.Subscript)
    )


def _is_legacy_chain(node: ast.AST, unit: Unit, facts: Facts) -> bool:
    """Whether this is the `flax` of `flax.optim`."""
    parent = unit.parents.get(node)
    if not isinstance(parent, ast.Attribute):
        return False
    return any(legacy_name(name) is not None for name in facts.externals(parent))


def _parts(use: Use) -> set[ast.AST]:
    """All that a use is about, in quotes or not."""
    return {part for node in (use.node, *use.said) for part in ast.walk(node)}


def _needed(
    remaining: list[ast.AST], decisions: Iterable[Decision], unit: Unit
) -> Reason:
    lines = sorted({getattr(node, "lineno", 0) for node in remaining})
    where = joined(", ", map(unit.location, lines[:3]))
    needs = "needs" if len(lines) == 1 else "need"
    inside = [one for one in decisions if not _parts(one.use).isdisjoint(remaining)]
    is_suppressed = inside and all(found.status == "suppressed" for found in inside)
    status: Status = "suppressed" if is_suppressed else "unresolved"
    refusal = reasons.name_needed(
        message("{} still {} this import.", where, needs),
        "Migrate what needs it first.",
    )
    first = next((found for found in inside if not found.applies), None)
    return Reason(status, refusal, first and (first.cause or first))
