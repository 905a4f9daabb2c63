"""Statements that have to move up so that a variable is set where it is needed now."""

from __future__ import annotations

import ast

from codemods.analysis.origins import (
    Origins,
    Variable,
    names_read,
)
from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.inference.objects import LegacyObject
from codemods.rewriting.edits import (
    ChangeArguments,
    Edit,
    MoveStatement,
    Replace,
    ReplaceStatement,
)
from codemods.sources.modules import Unit


class Edits(dict[ast.AST, tuple[Unit, Edit]]):
    """What changes, by the node that it changes."""

    def put(self, node: ast.AST, unit: Unit, edit: Edit) -> None:
        """Add a change, together with the one of the same node, if there is one."""
        whole: Edit | None = edit
        # train_step(optimizer, rate), which loses one argument and gets another
        if node in self and self[node] != (unit, edit):
            _, earlier = self[node]
            whole = earlier.merged(edit)
        if whole is None:
            raise Unproven("another change is made at the same place")
        self[node] = (unit, whole)

    def replace(self, node: ast.expr, unit: Unit, text: str) -> None:
        """Put source text in the place of an expression, together with its other change."""
        self.put(node, unit, Replace(unit.span(node), text))

    def add_argument(self, call: ast.Call, unit: Unit, name: str, text: str) -> None:
        """Give a call one more argument; one without a name is by position."""
        change = ChangeArguments(unit.span(call), added=((name, text),))
        self.put(call, unit, change)

    def take_away(self, statement: ast.stmt, unit: Unit) -> None:
        """Remove a statement, in the place of any other change of it."""
        self[statement] = (unit, ReplaceStatement(unit.span(statement), ()))

    def uses(self, kind: str, objects: tuple[LegacyObject, ...]) -> list[Use]:
        """The changes as uses of a kind, for some objects."""
        return [Use(kind, "", unit, node, objects) for node, (unit, _) in self.items()]  # type: ignore[arg-type]


def ahead_of(variable: Variable, statement: ast.stmt, origins: Origins) -> Edits:
    """The moves that set a variable ahead of a statement; none if it is set there already."""
    setting = origins.setting(variable)
    assert setting is not None
    unit = variable.unit
    block = unit.block_of(setting)
    # the statement of the block that the other one is within
    around = [statement, *unit.ancestors(statement)]
    target = next((outer for outer in around if outer in block), None)
    if not isinstance(target, ast.stmt) or target is setting:
        raise Unproven(f"`{variable.name}` is made in a block of its own")
    if block.index(target) > block.index(setting):
        return Edits()
    moves = Edits()
    place = unit.span(target)
    for one in _needed(variable, setting, target, block, origins):
        moves[one] = (unit, MoveStatement(unit.span(one), place))
    return moves


def _needed(
    variable: Variable,
    setting: ast.stmt,
    target: ast.stmt,
    block: list[ast.stmt],
    origins: Origins,
) -> list[ast.stmt]:
    """The statements that have to move ahead of `target`, in order, to set a variable there."""
    value = setting.value if isinstance(setting, ast.Assign | ast.AnnAssign) else None
    computed = setting if value is None else value
    dataflow = origins.dataflow
    effects = dataflow.effects(computed)
    what = f"`{variable.name}`"
    if value is not None and not effects.are_none:
        raise Unproven(
            f"{what} is made after the optimizer, by something that may do more than that"
        )
    first, last = block.index(target), block.index(setting)
    between = block[first:last]
    within = {inner for statement in between for inner in ast.walk(statement)}
    needed: list[ast.stmt] = []
    for name in names_read([computed]):
        read = origins.variable(name)
        if read is None or within.isdisjoint(origins.stores(read)):
            continue
        # schedule = make_schedule(rate), where `rate` is set after the optimizer is made, too
        earlier = origins.setting(read)
        if earlier is None or earlier not in between:
            raise Unproven(
                f"{what} depends on what is computed after the optimizer was made"
            )
        ahead = _needed(read, earlier, target, block, origins)
        needed += [one for one in ahead if one not in needed]
    for statement in between:
        if statement in needed:
            continue
        # rate = 0.1, between the optimizer and what reads `rate`
        if dataflow.changes(dataflow.effects(statement), effects):
            raise _changed_between(variable, statement)
    return [*needed, setting]


def _changed_between(variable: Variable, statement: ast.stmt) -> Unproven:
    where = variable.unit.location(statement.lineno)
    return Unproven(
        "something of which `{}` is made may change at {}, after the optimizer was made",
        variable.name,
        where,
    )
