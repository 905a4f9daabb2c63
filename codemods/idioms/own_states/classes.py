"""Which dataclasses may derive from `TrainState`."""

from __future__ import annotations

import ast

from codemods.edits import DeriveState
from codemods.idioms import Unproven
from codemods.idioms.counters import Counters
from codemods.idioms.own_states.draft import STEP, Draft

STRUCT = ("flax.struct.dataclass",)
TAKEN = ("params", "tx", "opt_state", "apply_fn", "create", "apply_gradients")
"""What a `TrainState` has beside its step."""


def check_class(draft: Draft) -> None:
    """Raises `Unproven` if a class may not."""
    node = draft.cls.node
    decorated = [name for one in node.decorator_list for name in draft.facts.externals(one)]
    full = [draft.facts.full_name(one) for one in node.decorator_list]
    if len(node.decorator_list) != 1 or not ({*decorated, *full} & {*STRUCT}) or node.bases or node.keywords:
        raise Unproven("it is no plain `flax.struct.dataclass`")
    if draft.cls.scope.names & {*TAKEN}:
        raise Unproven("it has a field or method that a `TrainState` has, too")
    if any(isinstance(one, ast.FunctionDef) and _mentions_field(draft, one) for one in node.body):
        raise Unproven("its own methods use the optimizer")
    if draft.counts and Counters(draft.facts, draft.origins).ahead(draft.cls, STEP, draft.name) != 0:
        raise Unproven("its step does not begin at 0")
    for heir in draft.facts.flow.reading.classes:
        if heir is not draft.cls and draft.cls in draft.facts.flow.ancestry(heir):
            raise Unproven("another class derives from it")


def _mentions_field(draft: Draft, method: ast.FunctionDef) -> bool:
    return any(isinstance(inner, ast.Attribute) and inner.attr == draft.name for inner in ast.walk(method))


def change_class(draft: Draft) -> None:
    """Let the class derive from `TrainState`."""
    unit = draft.cls.unit
    dropped = (draft.name, STEP) if draft.counts else (draft.name,)
    draft.result.edits.put(draft.cls.node, unit, DeriveState(unit.span(draft.cls.node), dropped))
