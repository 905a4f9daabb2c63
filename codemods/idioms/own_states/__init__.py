"""Dataclasses with an optimizer among their fields: in today's Flax, subclasses of `TrainState`."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Mapping
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.shapes import Parameters
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.flow.objects import Class, Thing
from codemods.idioms import Unproven
from codemods.idioms.clipping import Clippings
from codemods.idioms.groups import refuse_plain
from codemods.idioms.overrides import Overrides
from codemods.idioms.own_states.change import Change
from codemods.idioms.own_states.classes import change_class, check_class
from codemods.idioms.own_states.creation import Creation
from codemods.idioms.own_states.draft import Draft, OwnState, optimizers_of
from codemods.idioms.own_states.uses import InnerUses
from codemods.model import Message
from codemods.rewriting.edits import Edit

CODE = "FO214"


class OwnStates:
    """The dataclasses of a project that become subclasses of `TrainState`.

    For those that do not, it has the reason.
    """

    def __init__(
        self, stepping: Stepping, overrides: Overrides, clippings: Clippings, parameters: Parameters
    ) -> None:
        facts = stepping.facts
        self.states: list[OwnState] = []
        self._left: dict[ast.AST, Message] = {}
        if stepping.options.partial or not stepping.options.selects(CODE):
            return
        for cls in facts.flow.reading.classes:
            names = facts.flow.fields_in_order(cls)
            fields = [name for name in names if _is_optimizer(facts, cls, name)]
            if len(fields) != 1:
                continue
            try:
                draft = Draft(stepping, overrides, clippings, parameters, cls, fields[0])
                self.states.append(_state(draft))
            except Unproven as why:
                self._left[cls.node] = why.message

    @cached_property
    def outcomes(self) -> Mapping[ast.AST, Edit | None]:
        """What becomes of uses of optimizers within such states; None if that is done elsewhere."""
        return ChainMap(*(state.outcomes for state in self.states))

    def reason(self, use: Use) -> Message | None:
        """Why the dataclass around an annotation stays as it is; None if it does not."""
        around = (self._left.get(outer) for outer in use.unit.ancestors(use.node))
        return next((why for why in around if why is not None), None)

    def edit(self, use: Use) -> Edit:
        """What changes at one of `uses`."""
        edits = next(state.edits for state in self.states if use.node in state.edits)
        return edits[use.node][1]

    def uses(self) -> list[Use]:
        """What changes beside the legacy constructs."""
        found: list[Use] = []
        for state in self.states:
            found += state.edits.uses("own_state", state.things)
        return found


def _is_optimizer(facts: Facts, cls: Class, name: str) -> bool:
    """Whether a field has optimizers, and no other legacy object."""
    items = facts.flow.solver.at(facts.flow.field(cls, name))
    others = any(isinstance(item, Thing) and item.kind != "optimizer" for item in items)
    return bool(optimizers_of(facts, cls, name)) and not others


def _state(draft: Draft) -> OwnState:
    """What becomes of a class; whatever cannot be proven raises `Unproven`."""
    check_class(draft)
    InnerUses(draft).classify()
    creation, change = Creation(draft), Change(draft)
    made = 0
    for unit, call in draft.facts.flow.reading.calls:
        # State(step=0, optimizer=definition.create(params))
        if draft.cls in draft.facts.objects(call.func):
            creation.make(unit, call)
            made += 1
        # state.replace(optimizer=…)
        elif (base := change.replaced(call)) is not None:
            change.replace(unit, call, base)
    if not made:
        raise Unproven("the place that makes one is not in view")
    if draft.created or draft.stepped:
        left = next(iter((*draft.created.values(), *draft.stepped.values())))
        raise Unproven("its optimizer goes elsewhere at {}", left.location)
    change_class(draft)
    refuse_plain(draft.result.edits, draft.things, draft.stepping)
    return draft.result
