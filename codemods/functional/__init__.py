"""The other style of Flax's guide: an optimizer as parameters and optimizer state, each in a variable of its own.

A train state takes the place of the optimizer object where it stands. In this style the object falls into parts, in variables,
parameters, arguments, tuples that are returned and carries of loops; the transformation goes to the functions that take a step.
Whatever has no counterpart in parts, such as a field of a dataclass, leaves the whole group of optimizers a train state.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from codemods.edits import Edit, Replace
from codemods.facts import unify
from codemods.flow.objects import Thing
from codemods.functional.annotations import tuple_of_parts
from codemods.functional.draft import Draft
from codemods.functional.interfaces import Interfaces
from codemods.functional.parts import Names
from codemods.functional.places import Group, Index, gone
from codemods.functional.writing import write
from codemods.idioms import Unproven
from codemods.idioms.order import Edits
from codemods.uses import Use

if TYPE_CHECKING:
    from codemods.rules.context import Context

KNOWN = (
    *("definition", "custom", "class", "value", "dynamic", "base", "import", "module", "definition.create"),
    *("optimizer.target", "optimizer.apply_gradient", "optimizer.replace", "optimizer.state", "state.step"),
    *("annotation", "stored", "restored", "filter"),
)
"""The uses that have a counterpart in parts, or are none of an optimizer."""

AT_RUN_TIME = tuple(f"builtins.{name}" for name in ("dir", "eval", "exec", "globals", "locals", "vars"))
"""What finds variables by names that only the run tells."""


@dataclass
class Outcomes:
    """What came of all groups: for their things a draft or a reason, and all edits, with the optimizers that each is for."""

    found: dict[Thing, Draft | str] = field(default_factory=dict)
    edits: Edits = field(default_factory=Edits)
    concerned: dict[ast.AST, list[Thing]] = field(default_factory=lambda: defaultdict(list))
    rewritten: set[ast.AST] = field(default_factory=set)
    beside: set[tuple[ast.AST, Edit]] = field(default_factory=set)

    def take(self, draft: Draft) -> None:
        """Add what a group changes to what others do."""
        for node, change in draft.edits.items():
            if draft.before.get(node) != change:
                self.concerned[node] += draft.group.optimizers
        self.edits = draft.edits
        self.beside |= {
            (node, edit) for beside in _beside(draft.context, draft.group.members) for node, (_, edit) in beside.items()
        }
        self.rewritten |= draft.rewritten.keys()


class Functional:
    """The groups of optimizers that fall into parts; for those that do not, the reason."""

    def __init__(self, context: Context) -> None:
        self.outcomes = Outcomes()
        if context.options.style != "functional" or context.options.partial:
            return
        attempts = _Attempts(context)
        self.outcomes = attempts.outcomes({})
        left: dict[Thing, str] = {}
        for thing, family in attempts.stored.items():
            if self.reason([thing]):
                where = thing.unit.place(getattr(thing.node, "lineno", 1))
                left.setdefault(family, f"so does the one made at {where}, which is stored in checkpoints, too")
        if left:
            refused = {thing: left[family] for thing, family in attempts.stored.items() if family in left}
            self.outcomes = attempts.outcomes({thing: self.reason([thing]) or why for thing, why in refused.items()})

    @cached_property
    def written(self) -> list[Draft]:
        """The groups that fall into parts."""
        return list({id(found): found for found in self.outcomes.found.values() if isinstance(found, Draft)}.values())

    def concerns(self, node: ast.AST) -> bool:
        """Whether the use at a node is one of an optimizer that falls into parts, and is no definition."""
        return any(node in found.outcomes for found in self.written)

    def outcome(self, node: ast.AST) -> Edit | None:
        """What becomes of such a use; None if that is done elsewhere."""
        return next(found.outcomes[node] for found in self.written if node in found.outcomes)

    def reason(self, things: Iterable[Thing]) -> str:
        """Why some optimizers stay train states; empty if they do not."""
        found = next((self.outcomes.found[thing] for thing in things if thing in self.outcomes.found), "")
        return found if isinstance(found, str) else ""

    def edit(self, use: Use) -> Edit:
        """What changes at one of `uses`."""
        return self.outcomes.edits[use.node][1]

    def uses(self) -> list[Use]:
        """What changes beside the legacy constructs."""
        return [
            Use("functional", "", self.outcomes.edits[node][0], node, tuple(things))  # type: ignore[arg-type]
            for node, things in self.outcomes.concerned.items()
        ]


class _Attempts:
    """The proofs for all groups of a project."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.index = Index(context)
        members: dict[Thing, list[Thing]] = defaultdict(list)
        for thing, group in context.facts.groups.items():
            members[group].append(thing)
        self.groups = [found for found in members.values() if any(thing.kind == "optimizer" for thing in found)]
        self.stored = self._families()
        removed = {node for found in self.groups for node in gone(context, found)}
        self.counted = {
            self.stored[thing]
            for use in context.facts.uses
            if use.kind == "state.step" and use.node not in removed
            for thing in use.things
            if thing in self.stored
        }

    def _families(self) -> dict[Thing, Thing]:
        """A representative for all optimizers that may restore what one of them stored: those of the same kind."""
        stored = {
            thing for use in self.context.facts.uses if use.kind in ("stored", "restored") for thing in use.things
        }
        groups = [members for members in self.groups if not stored.isdisjoint(members)]
        alike: dict[str, list[Thing]] = defaultdict(list)
        for members in groups:
            for thing in members:
                if thing.kind == "definition":
                    alike[thing.name].append(thing)
        return unify([*groups, *alike.values()])

    def outcomes(self, refused: Mapping[Thing, str]) -> Outcomes:
        """What comes of each group; some are refused for a reason that is known."""
        names, outcomes = Names(self.context.origins), Outcomes()
        for members in self.groups:
            trial = names.copy()
            try:
                if members[0] in refused:
                    raise Unproven(refused[members[0]])
                draft = self._written(members, trial, outcomes)
                outcomes.found.update(dict.fromkeys(members, draft))
                outcomes.take(draft)
                names = trial
            except Unproven as why:
                outcomes.found.update(dict.fromkeys(members, str(why)))
        return outcomes

    def _written(self, members: list[Thing], names: Names, others: Outcomes) -> Draft:
        context = self.context
        if any({*members} & {*state.things} for state in context.own_states.states):
            raise Unproven("the dataclass around it is a train state")
        group = Group(context, self.index, members, self.stored.get(members[0]) in self.counted)
        _check_uses(group)
        edits = Edits(others.edits)
        for beside in _beside(context, members):
            for node, (unit, edit) in beside.items():
                if (node, edit) not in others.beside:
                    edits.put(node, unit, edit)
        draft = Draft(group, Interfaces(group), names, edits, others.rewritten)
        write(draft)
        for use in group.uses:
            if use.kind == "annotation":
                draft.outcomes[use.node] = _annotation(use, draft)
        changed = {unit for node, (unit, _) in draft.edits.items() if node not in others.edits}
        if not (changed | {use.unit for use in group.uses}).isdisjoint(context.plain):
            raise Unproven("the file could not be rewritten in this form")
        return draft


def _beside(context: Context, things: Iterable[Thing]) -> tuple[Edits, Edits]:
    """What other idioms change for the sake of some things."""
    return context.edits_beside(things), context.clippings.edits_of(things)


def _check_uses(group: Group) -> None:
    context = group.context
    for use in group.uses:
        if use.kind not in KNOWN:
            raise Unproven(f"`.{use.name}` is used at {use.where}")
        if use.kind == "definition.create" and use.call is None:
            raise Unproven(f"`create` is passed on at {use.where}")
        if context.axes(use.things):
            raise Unproven("its own method replicated it")
    units = {use.unit for use in group.uses}
    for unit, call in context.facts.flow.reading.calls:
        if unit in units and context.facts.full_name(call.func) in AT_RUN_TIME:
            raise Unproven(f"its variables may be found by name at {unit.place(call.lineno)}")
    if not all(context.facts.legacy.definitions(thing) for thing in group.optimizers):
        raise Unproven("the place that makes it is not in view")


def _annotation(use: Use, draft: Draft) -> Edit | None:
    """What becomes of the class in an annotation: the types of the parts, unless those are written with what is annotated."""
    if use.node in draft.edits:
        return draft.edits.pop(use.node)[1]
    if use.node in draft.replaced:
        return None
    if isinstance(use.node, ast.Constant):
        raise Unproven(f"a quoted annotation says what it is at {use.where}")
    return Replace(use.span, tuple_of_parts(draft.group))
