"""Statements that have to move up so that a variable is set where it comes to be needed."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Origins, Variable, block_of, names_read, statement_of
from codemods.analysis.uses import Use
from codemods.flow.objects import Thing
from codemods.idioms import Unproven
from codemods.rewriting.edits import Edit, MoveStatement, ReplaceStatement, merged
from codemods.sources.modules import Unit


class Edits(dict[ast.AST, tuple[Unit, Edit]]):
    """What changes, by the node that it changes."""

    def put(self, node: ast.AST, unit: Unit, edit: Edit) -> None:
        """Add a change to those there are, if only of the same node.

        Raises:
          Unproven: if it does not go together with what changes there already.
        """
        whole = merged(self[node][1], edit) if node in self else edit
        if whole is None:
            raise Unproven("another change is made at the same place")
        self[node] = (unit, whole)

    def take_away(self, statement: ast.stmt, unit: Unit) -> None:
        """Take a statement away, whatever else was to become of it."""
        self[statement] = (unit, ReplaceStatement(unit.span(statement), ()))

    def uses(self, kind: str, things: tuple[Thing, ...]) -> list[Use]:
        """The changes as uses of a kind, for the sake of some things."""
        return [Use(kind, "", unit, node, things) for node, (unit, _) in self.items()]  # type: ignore[arg-type]


def ahead_of(variable: Variable, statement: ast.stmt, origins: Origins) -> Edits:
    """The moves after which a variable that one statement of the file sets is so ahead of another; none if it is already.

    Raises:
      Unproven: if that would change what is computed.
    """
    setting = origins.setting(variable)
    assert setting is not None
    unit = variable.unit
    block = block_of(unit, setting)
    around = [statement, *unit.ancestors(statement)]
    target = next((outer for outer in around if outer in block), None)
    if not isinstance(target, ast.stmt) or target is setting:
        raise Unproven(f"`{variable.name}` is made in a block of its own")
    if block.index(target) > block.index(setting):
        return Edits()
    moving = _needed(variable, setting, target, block, origins)
    return Edits({one: (unit, MoveStatement(unit.span(one), unit.span(target))) for one in moving})


def _needed(
    variable: Variable, setting: ast.stmt, target: ast.stmt, block: list[ast.stmt], origins: Origins
) -> list[ast.stmt]:
    """The statements that have to move ahead of `target`, in order, so that a variable is set there.

    Raises:
      Unproven: if one of them does more than to set its variable, or would find something changed.
    """
    value = setting.value if isinstance(setting, ast.Assign | ast.AnnAssign) else None
    effects = origins.dataflow.effects(setting if value is None else value)
    if value is not None and not effects.are_none:
        raise Unproven(
            f"`{variable.name}` is made after the optimizer, by something that may do more than that"
        )
    between = block[block.index(target) : block.index(setting)]
    needed: list[ast.stmt] = []
    for name in names_read([setting] if value is None else [value]):
        read = origins.variable(name)
        within = {inner for statement in between for inner in ast.walk(statement)}
        if read is None or within.isdisjoint(origins.stores(read)):
            continue
        earlier = origins.setting(read)
        if earlier is None or earlier not in between:
            raise Unproven(
                f"`{variable.name}` depends on what is computed after the optimizer was made"
            )
        needed += [
            one for one in _needed(read, earlier, target, block, origins) if one not in needed
        ]
    for statement in between:
        if statement not in needed and origins.dataflow.changes(
            origins.dataflow.effects(statement), effects.reads
        ):
            raise Unproven(
                f"something of which `{variable.name}` is made may change at {variable.unit.place(statement.lineno)}, after the "
                "optimizer was made"
            )
    return [*needed, setting]


def may_wait(value: ast.expr, unit: Unit, later: ast.stmt, origins: Origins) -> bool:
    """Whether a value may as well be computed at a later statement of the same block."""
    statement = statement_of(unit, value)
    block = block_of(unit, statement)
    if later not in block or block.index(statement) >= block.index(later):
        return False
    children = [
        child.value if isinstance(child, ast.keyword) else child
        for child in ast.iter_child_nodes(value)
    ]
    return origins.dataflow.stays(
        [child for child in children if isinstance(child, ast.expr)], statement, later
    )
