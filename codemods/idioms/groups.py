"""The optimizers that step together, and what they are made by."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.flow.objects import Thing
from codemods.idioms import Unproven
from codemods.optimizers import optimizers

if TYPE_CHECKING:
    from codemods.rules.context import Context

RESTORING = ("restore_checkpoint", "from_bytes", "msgpack_restore", "from_state_dict", "orbax")
"""What a file that reads checkpoints names."""


def constructors(members: list[Thing], context: Context) -> dict[ast.Call, Thing]:
    """The calls that make the definitions of a group.

    Raises:
      Unproven: if one of them is not made by a constructor in view.
    """
    made = {thing.node: thing for thing in members if thing.kind == "definition"}
    stepped = [thing for thing in members if thing.kind == "optimizer"]
    if not made or any(not context.facts.legacy.definitions(thing) for thing in stepped):
        raise Unproven("the place that makes the optimizer is not in view")
    found: dict[ast.Call, Thing] = {}
    for node, thing in made.items():
        if not (isinstance(node, ast.Call) and node in context.constructors and thing.name in optimizers()):
            raise Unproven("the optimizer is not made by a plain constructor")
        found[node] = thing
    return found


def outermost(members: list[Thing], context: Context) -> list[ast.Call]:
    """The constructors of a group that are no part of another. One with a mask stands for the groups that it was.

    Raises:
      Unproven: if one of the group's definitions is not made by a constructor in view.
    """
    made = constructors(members, context)
    parts = {inner for thing in made.values() for inner in context.facts.legacy.definitions(thing) if inner != thing}
    whole = [call for call, thing in made.items() if thing not in parts]
    return [mask.definition if (mask := context.masks.of(call)) is not None else call for call in whole]


def refuse_templates(members: list[Thing], context: Context) -> None:
    """An optimizer that takes no step may be what restores the checkpoints of a group, and has to have the same state.

    Raises:
      Unproven: if there may be such an optimizer.
    """
    names = {thing.name for thing in members if thing.kind == "definition"}
    stepped = {thing for use in context.all_steps for thing in use.things}
    for thing in context.facts.groups:
        if thing.kind != "optimizer" or thing in stepped or thing in members or thing.evidence != "proven":
            continue
        made = {found.name for found in context.facts.legacy.definitions(thing)}
        if made & names and any(word in thing.unit.code for word in RESTORING):
            where = thing.unit.place(getattr(thing.node, "lineno", 1))
            raise Unproven(f"{where} restores checkpoints into such an optimizer that takes no step")
