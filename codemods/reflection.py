"""Legacy objects and modules that are reached by a name in a string, or by a pattern."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.flow.objects import Result, Thing
from codemods.legacy import RESTORING, legacy_name
from codemods.uses import ATTRIBUTES, Use

if TYPE_CHECKING:
    from codemods.facts import Facts
    from codemods.flow.modules import Unit

BY_NAME = ("builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.delattr")
WHOLE = ("builtins.vars", "dataclasses.replace", "dataclasses.asdict", "dataclasses.astuple", "dataclasses.fields")
IMPORTING = ("importlib.import_module", "builtins.__import__", "importlib.util.find_spec")
TELLING = ("target", "optimizer_def", "apply_gradient", "param_states")
"""Attributes that hardly anything but an optimizer has."""


def reflection(facts: Facts, unit: Unit, node: ast.AST) -> Use | None:
    """The use that a call, a subscript or a pattern is, if it is one."""
    match node:
        case ast.Call(args=[first, *_]):
            return _call(facts, unit, node, first)
        case ast.Subscript(value=value, slice=ast.Constant(value="target" | "state" as key)):
            things = tuple(facts.things(value, "optimizer"))
            restored = any(isinstance(item, Result) and item.name in RESTORING for item in facts.objects(value))
            if things or (restored and key == "target"):
                return Use("state_dict", key, unit, node, things)
    return None


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
