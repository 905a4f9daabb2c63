"""Dataclasses that hold an optimizer beside other things: in today's Flax, subclasses of `TrainState`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.edits import Edit
from codemods.flow.objects import Class, Thing
from codemods.idioms import Unproven
from codemods.idioms.own_states.change import Change
from codemods.idioms.own_states.classes import change_class, check_class
from codemods.idioms.own_states.creation import Creation
from codemods.idioms.own_states.draft import Draft, OwnState, optimizers_of
from codemods.idioms.own_states.uses import InnerUses
from codemods.uses import Use

if TYPE_CHECKING:
    from codemods.rules.context import Context

CODE = "FO214"


class OwnStates:
    """The dataclasses of a project that become subclasses of `TrainState`; for those that do not, the reason."""

    def __init__(self, context: Context) -> None:
        self.found: dict[Class, OwnState | str] = {}
        if context.options.partial or not context.options.selects(CODE):
            return
        for cls in context.facts.flow.reading.classes:
            fields = [name for name in context.facts.flow.fields_in_order(cls) if _is_optimizer(context, cls, name)]
            if len(fields) == 1:
                try:
                    self.found[cls] = _state(context, Draft(context, cls, fields[0]))
                except Unproven as why:
                    self.found[cls] = str(why)

    @property
    def states(self) -> list[OwnState]:
        return [state for state in self.found.values() if isinstance(state, OwnState)]

    def concerns(self, node: ast.AST) -> bool:
        """Whether the use of an optimizer at a node is one of such a state."""
        return any(node in state.outcomes for state in self.states)

    def outcome(self, node: ast.AST) -> Edit | None:
        """What becomes of such a use; None if that is done elsewhere."""
        return next(state.outcomes[node] for state in self.states if node in state.outcomes)

    def reason(self, use: Use) -> str:
        """Why the dataclass around an annotation stays as it is; empty if it does not."""
        around = [outer for outer in use.unit.ancestors(use.node) if isinstance(outer, ast.ClassDef)]
        return next((why for cls, why in self.found.items() if isinstance(why, str) and cls.node in around), "")

    def edit(self, use: Use) -> Edit:
        """What changes at one of `uses`."""
        return next(state.edits[use.node][1] for state in self.states if use.node in state.edits)

    def uses(self) -> list[Use]:
        """What changes beside the legacy constructs."""
        return [
            Use("own_state", "", unit, node, state.things)  # type: ignore[arg-type]
            for state in self.states
            for node, (unit, _) in state.edits.items()
        ]


def _is_optimizer(context: Context, cls: Class, name: str) -> bool:
    """Whether a field has optimizers, and no other legacy object."""
    items = context.facts.flow.solver.at(context.facts.flow.field(cls, name))
    others = any(isinstance(item, Thing) and item.kind != "optimizer" for item in items)
    return bool(optimizers_of(context, cls, name)) and not others


def _state(context: Context, draft: Draft) -> OwnState:
    """What becomes of a class; whatever cannot be shown raises `Unproven`."""
    check_class(draft)
    InnerUses(draft).classify()
    creation, change = Creation(draft), Change(draft)
    made = 0
    for unit, call in draft.facts.flow.reading.calls:
        if draft.cls in draft.facts.objects(call.func):
            creation.make(unit, call)
            made += 1
        elif (base := change.replaced(call)) is not None:
            change.replace(unit, call, base)
    if not made:
        raise Unproven("the place that makes one is not in view")
    if draft.created or draft.stepped:
        left = next(iter((*draft.created.values(), *draft.stepped.values())))
        raise Unproven(f"its optimizer goes elsewhere at {left.where}")
    change_class(draft)
    units = {unit for unit, _ in draft.result.edits.values()} | {thing.unit for thing in draft.things}
    if not units.isdisjoint(context.plain):
        raise Unproven("the file could not be rewritten in this form")
    return draft.result
