"""The uses of an optimizer within a dataclass, which become uses of the dataclass itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.initial_params import need_any
from codemods.analysis.uses import Use, owner_of_state
from codemods.idioms import Unproven
from codemods.idioms.own_states.state import OwnState
from codemods.inference.binding import arguments_of
from codemods.inference.objects import LegacyObject
from codemods.optimizers.methods import CREATE
from codemods.renaming.attributes import is_known
from codemods.rewriting.edits import Edit, Replace
from codemods.sources.modules import Unit

READ = ("optimizer.target", "state.step", "optimizer.state")
"""The uses that read a part of an optimizer."""

FIELDS = {"optimizer.target": "params", "state.step": "step"}
"""What a train state calls such a part."""

INNER = (
    "optimizer.target",
    "optimizer.apply_gradient",
    "state.step",
    "optimizer.state",
)
"""The uses of an optimizer that are uses of a train state, too."""


def classify(draft: OwnState) -> None:
    """Decide on each use of the optimizer, by where it gets it from."""
    group = {*draft.objects}
    _refuse_unknown(draft, group)
    known: set[ast.AST] = set()
    for use in draft.facts.uses:
        if use.kind == "definition.create":
            _note_created(draft, use, group)
        is_of_group = not group.isdisjoint(use.objects)
        if not is_of_group and not _is_state_of(draft, use, group):
            continue
        if use.kind not in (*INNER, "annotation"):
            raise Unproven("its optimizer is used by itself at {}", use.location)
        if use.kind != "annotation":
            known.add(_decide(draft, use))
    for unit, node in _reads(draft):
        if not draft.is_one(node.value):
            continue
        parent = unit.parents.get(node)
        is_alias = isinstance(parent, ast.Assign) and parent.value is node
        # show(state.optimizer)
        if node not in known and not is_alias:
            where = unit.location(node.lineno)
            raise Unproven("its optimizer is handed on at {}", where)


def _reads(draft: OwnState) -> Iterator[tuple[Unit, ast.Attribute]]:
    """Where an attribute with the field's name is read."""
    for unit, node in draft.facts.flow.reading.attributes:
        if node.attr == draft.name and isinstance(node.ctx, ast.Load):
            yield unit, node


def _refuse_unknown(draft: OwnState, group: set[LegacyObject]) -> None:
    """Refuse attributes with the field's name of objects of which the class is unknown."""
    groups = draft.facts.groups
    together = {groups[obj] for obj in group if obj in groups}
    for obj, whole in groups.items():
        if obj.kind == "optimizer" and whole in together and obj not in group:
            line = getattr(obj.node, "lineno", 1)
            where = obj.unit.location(line)
            raise Unproven("what its optimizer meets at {} is no part of it", where)
    unknown = "nothing tells of which class the object is"
    for unit, node in _reads(draft):
        if not is_known(node.value, draft.facts):
            raise Unproven("{} at {}", unknown, unit.location(node.lineno))
    for unit, call in draft.facts.flow.reading.calls:
        match call.func:
            # state.replace(optimizer=optimizer)
            case ast.Attribute(attr="replace", value=value) if not is_known(
                value, draft.facts
            ):
                if any(word.arg == draft.name for word in call.keywords):
                    raise Unproven("{} at {}", unknown, unit.location(call.lineno))


def _is_state_of(draft: OwnState, use: Use, group: set[LegacyObject]) -> bool:
    """Whether a use is `optimizer.state.step` of an optimizer of the group."""
    owner = owner_of_state(use.owner) if use.kind == "state.step" else None
    if owner is None:
        return False
    return not group.isdisjoint(draft.facts.legacy_objects(owner, "optimizer"))


def _decide(draft: OwnState, use: Use) -> ast.AST:
    """Note what becomes of a use, and return the expression for its optimizer."""
    receiver = use.owner
    # state.optimizer.state.step
    if use.kind == "state.step":
        receiver = owner_of_state(use.owner) or use.owner
    holder = draft.holder(receiver)
    is_plain = use.kind in READ or use.call is not None
    stays = draft.facts.dataflow.stays
    if holder is None or not is_plain:
        raise Unproven("its optimizer is used by itself at {}", use.location)
    # optimizer = state.optimizer, and then optimizer.target
    if holder is not receiver and not stays([holder], holder, receiver):
        raise Unproven("its optimizer is used by itself at {}", use.location)
    field = FIELDS.get(use.kind)
    edit: Edit | None = None
    # state.params, or state.step
    if field is not None:
        base = ("base", use.unit.span(holder.value))
        edit = Replace(use.span, f"{{base}}.{field}", (base,))
    # state.optimizer.apply_gradient(grads)
    elif use.kind != "optimizer.state" and use.call is not None:
        draft.stepped[use.call] = use
    draft.outcomes[use.node] = edit
    if isinstance(receiver, ast.Name):
        _drop_alias(draft, receiver)
    return holder


def _drop_alias(draft: OwnState, name: ast.Name) -> None:
    """Remove `optimizer = state.optimizer`."""
    variable = draft.origins.variable(name)
    setting = draft.origins.setting(variable)
    cannot = Unproven("a variable for its optimizer cannot be taken away")
    if variable is None or setting is None:
        raise cannot
    unit = variable.unit
    # the only statement of a function
    if len(unit.block_of(setting)) < 2:
        raise cannot
    for load in draft.origins.loads(variable):
        if not isinstance(unit.parents.get(load), ast.Attribute):
            where = unit.location(load.lineno)
            raise Unproven("its optimizer is handed on at {}", where)
    draft.edits.take_away(setting, unit)


def _note_created(draft: OwnState, use: Use, group: set[LegacyObject]) -> None:
    """Note a call that makes an optimizer of the group: `definition.create(params)`."""
    call = use.call
    whole = use.parent
    if not isinstance(whole, ast.expr):
        return
    if group.isdisjoint(draft.facts.legacy_objects(whole, "optimizer")):
        return
    given = arguments_of(CREATE, call) if call is not None else None
    # definition.create(params, focus=traversal)
    if call is None or given is None or given.keys() != {"target"}:
        raise Unproven("its optimizer is not made plainly at {}", use.location)
    optimizers = draft.facts.legacy_objects(call, "optimizer")
    if any(need_any(optimizer, draft.facts) for optimizer in optimizers):
        raise Unproven("its parameters are an array or a dataclass")
    draft.created[call] = use
