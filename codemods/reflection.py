"""Legacy objects and modules that are reached by a name in a string, or by a pattern."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.flow.objects import Result, Thing
from codemods.legacy import READING, RESTORING, STORING, legacy_name
from codemods.uses import ATTRIBUTES, Use

if TYPE_CHECKING:
    from codemods.facts import Facts
    from codemods.flow.modules import Unit

BY_NAME = ("builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.delattr")
WHOLE = ("builtins.vars", "dataclasses.replace", "dataclasses.asdict", "dataclasses.astuple", "dataclasses.fields")
IMPORTING = ("importlib.import_module", "builtins.__import__", "importlib.util.find_spec")
TELLING = ("target", "optimizer_def", "apply_gradient", "param_states")
"""Attributes that hardly anything but an optimizer has."""


def reflections(facts: Facts, unit: Unit, node: ast.AST) -> list[Use]:
    """The uses that a call, a subscript or a pattern is."""
    stored = _stored(facts, unit, node) if isinstance(node, ast.Call) else []
    found = _reflection(facts, unit, node)
    return stored if found is None else [*stored, found]


def _stored(facts: Facts, unit: Unit, call: ast.Call) -> list[Use]:
    """The optimizers that a call stores; the call itself, if it restores one."""
    called = set(facts.externals(call.func))
    if not called & (STORING | READING):
        return []
    arguments = (*call.args, *(word.value for word in call.keywords))
    held = [(argument, things) for argument in arguments for things in _met(facts, argument)]
    if held and called & READING:
        target = held[0][0]  # behind it may be a state dict, whose parts are those of the optimizer
        held = [(argument, things) for argument, things in held if argument is target]
    uses = [Use("stored", ast.unparse(argument), unit, argument, things) for argument, things in held]
    if not held or not called & READING:
        return uses
    return [*uses, Use("restored", ast.unparse(call.func), unit, call, held[0][1])]


def _met(facts: Facts, argument: ast.expr) -> list[tuple[Thing, ...]]:
    """The optimizers that an argument is; each for itself, those that a container holds."""
    direct = tuple(facts.things(argument, "optimizer"))
    held = [thing for thing in facts.within(facts.flow.places[argument]) if thing.kind == "optimizer"]
    return [direct] if direct else [(thing,) for thing in held]


def _reflection(facts: Facts, unit: Unit, node: ast.AST) -> Use | None:
    match node:
        case ast.Call(args=[first, *_]):
            return _call(facts, unit, node, first)
        case ast.Subscript(value=value, slice=ast.Constant(value="target" | "state" as key)):
            things = tuple(facts.things(value, "optimizer"))
            if _is_restored(facts, value) and (key == "target" or _names_a_part(unit.parents.get(node))):
                return Use("checkpoint", key, unit, node, ())
            return Use("state_dict", key, unit, node, things) if things else None
        case ast.Compare(left=ast.Constant(value="target"), ops=[ast.In() | ast.NotIn()], comparators=[value]):
            chooses = isinstance(unit.parents.get(node), ast.IfExp)
            if _is_restored(facts, value) and not chooses:
                return Use("checkpoint", "target", unit, node, ())
    return None


def _names_a_part(node: ast.AST | None) -> bool:
    """Whether this reads a part of a legacy optimizer's state by its key."""
    match node:
        case ast.Subscript(slice=ast.Constant(value="step" | "param_states")):
            return True
        case _:
            return False


def _is_restored(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression may hold a checkpoint that was read as plain dicts, or a part of it."""
    return any(isinstance(item, Result) and item.name in RESTORING for item in facts.objects(node))


def _call(facts: Facts, unit: Unit, node: ast.Call, first: ast.expr) -> Use | None:
    called = set(facts.externals(node.func))
    things: list[Thing] = []
    name = _literal(node.args[1]) if len(node.args) > 1 else None
    if called & set(BY_NAME) and len(node.args) > 1:
        if name == "optim" and "flax" in facts.externals(first):
            return Use("module", "", unit, node, ())
        things = [thing for thing in facts.things(first) if name is None or name in ATTRIBUTES[thing.kind]]
    elif called & set(WHOLE):
        things = facts.things(first, "optimizer", "state")
    elif called & set(IMPORTING) and legacy_name(_literal(first) or "") is not None:
        return Use("module", "", unit, node, ())
    elif "operator.attrgetter" in called and set(TELLING) & set((_literal(first) or "").split(".")):
        return Use("reflection", str(_literal(first)), unit, node, ())
    return Use("reflection", str(name), unit, node, tuple(things)) if things else None


def _literal(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
