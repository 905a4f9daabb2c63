"""Dataclasses with an optimizer among their fields: in today's Flax, subclasses of `TrainState`."""

from __future__ import annotations

import ast
from collections import ChainMap, defaultdict
from collections.abc import Mapping
from functools import cached_property

from codemods.analysis.facts import Facts
from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.idioms.base import Idiom, Results
from codemods.idioms.groups import refuse_kept
from codemods.idioms.order import Edits
from codemods.idioms.own_states.candidates import change_class, check_class
from codemods.idioms.own_states.change import replace, replaced
from codemods.idioms.own_states.creation import make
from codemods.idioms.own_states.optimizer_uses import classify
from codemods.idioms.own_states.state import OwnState, optimizers_of
from codemods.inference.objects import Class, LegacyObject
from codemods.messages import message
from codemods.model import Message, Prose
from codemods.rewriting.edits import Edit, Keep


class OwnStates(Idiom):
    """A `flax.struct.dataclass` that holds one optimizer, and perhaps its step a second time,
    becomes a subclass of `TrainState` with the other fields.

    This requires that the optimizer is only used as a part of such an object: it is read, stepped
    and put back into the object that it came from, and made directly for a new object. A field
    `step` must always agree with the optimizer's own: only steps set it, and no such object is made
    out of view. The class must have no special method, nothing called `params`, `tx`, `opt_state`,
    `apply_fn`, `create`, `apply_gradients`, `replace`, `cls` or `grads`, and nothing else called
    `step`. Its objects must only go to functions in view, and to functions that are known not to
    read fields: not to `getattr`, `vars`, `dataclasses.asdict`, `to_state_dict`, `pickle` or a
    pattern of `match`. No checkpoint that is read as plain dicts is asked for the key of the
    optimizer. Otherwise the train state replaces only the optimizer.
    """

    code = "FO214"
    summary = "a dataclass around an optimizer is a train state"
    kind = "own_state"
    before = """@flax.struct.dataclass
class TrainState:
    step: int
    optimizer: optim.Optimizer
    model_state: Any


new_optimizer = state.optimizer.apply_gradient(grads)
state = state.replace(
    step=state.step + 1, optimizer=new_optimizer, model_state=new_model_state
)
"""
    after = """\
class TrainState(train_state.TrainState):
    model_state: Any

state = state.apply_gradients(grads=grads, model_state=new_model_state)
"""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        super().__init__(stepping, results)
        facts = self.facts
        self.states: list[OwnState] = []
        self._left: dict[ast.AST, Message] = {}
        if not self.is_wanted:
            return
        tried: dict[tuple[str, ...], dict[Class, OwnState]] = defaultdict(dict)
        left: dict[tuple[str, ...], list[Class]] = defaultdict(list)
        for cls in facts.flow.reading.classes:
            # class State(NamedTuple), of which nobody expects it
            if not cls.node.decorator_list:
                continue
            names = facts.flow.fields_in_order(cls)
            fields = [name for name in names if _is_optimizer(facts, cls, name)]
            if len(fields) != 1:
                continue
            # scripts have copies of a class, and read each other's checkpoints
            copies = (cls.node.name, *names)
            try:
                draft = OwnState(stepping, results, cls, fields[0])
                _prove(draft)
                tried[copies][cls] = draft
            except Unproven as why:
                self._left[cls.node] = why.message
                left[copies].append(cls)
        for copies, found in tried.items():
            for cls, state in found.items():
                near = (
                    one for one in left[copies] if stepping.are_near(one.unit, cls.unit)
                )
                other = next(near, None)
                if other is None:
                    self.states.append(state)
                    continue
                where = other.unit.location(other.node.lineno)
                self._left[cls.node] = message("nor does the same class at {}", where)

    @cached_property
    def outcomes(self) -> Mapping[ast.AST, Edit | None]:
        """What becomes of uses of optimizers within such states; None if that is done elsewhere."""
        return ChainMap(*(state.outcomes for state in self.states))

    def form(self, use: Use, general: Edit | Keep) -> Edit | Keep:
        if use.node not in self.outcomes:
            return general
        return self.outcomes[use.node] or Keep()

    def note(self, use: Use) -> Prose:
        if use.kind != "annotation":
            return ""
        around = (self._left.get(outer) for outer in use.unit.ancestors(use.node))
        why = next((one for one in around if one is not None), None)
        if why is None:
            return ""
        return message("The class around it does not become a train state: {}.", why)

    @property
    def changes(self) -> list[tuple[Edits, tuple[LegacyObject, ...]]]:
        return [(state.edits, state.objects) for state in self.states]


def _is_optimizer(facts: Facts, cls: Class, name: str) -> bool:
    """Whether a field has optimizers, and no other legacy object."""
    items = facts.flow.solver.at(facts.flow.field(cls, name))
    others = any(
        isinstance(item, LegacyObject) and item.kind != "optimizer" for item in items
    )
    return bool(optimizers_of(facts, cls, name)) and not others


def _prove(draft: OwnState) -> None:
    """Find what becomes of a class; whatever cannot be proven raises `Unproven`."""
    check_class(draft)
    classify(draft)
    made = 0
    for unit, call in draft.facts.flow.reading.calls:
        # State(step=0, optimizer=definition.create(params))
        if draft.cls in draft.facts.objects(call.func):
            make(draft, unit, call)
            made += 1
        # state.replace(optimizer=…)
        elif (base := replaced(draft, call)) is not None:
            replace(draft, unit, call, base)
    if not made:
        raise Unproven("the place that makes one is not in view")
    if draft.created or draft.stepped:
        left = next(iter((*draft.created.values(), *draft.stepped.values())))
        raise Unproven("its optimizer goes elsewhere at {}", left.location)
    change_class(draft)
    refuse_kept(draft.objects, draft.stepping)


IDIOM = OwnStates
