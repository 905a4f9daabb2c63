"""Where the state dicts of optimizers are looked into: their keys are others for a train state.

What is asked of one by a key that is gone is an error, and no key of an optimizer is one that its
owner would not know. So this holds nobody back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from codemods.analysis.facts import Facts
from codemods.analysis.naming import last_word
from codemods.analysis.uses import Use
from codemods.inference.objects import (
    Class,
    Container,
    Function,
    LegacyObject,
    Method,
    Partial,
)
from codemods.sources.modules import Unit
from codemods.vocabulary import (
    COPY,
    FROM_STATE_DICT,
    HAND_THROUGH,
    MAP_TREES,
    SAVE,
    TO_BYTES,
    TO_MSGPACK,
    TO_STATE_DICT,
    full_names,
)

KIND = "state_dict"
MAKING = ("to_state_dict", "asdict", "state_dict")
"""The functions and methods that make a state dict of an optimizer."""

KNOWN_KEYS = ("target", "state")
OBLIVIOUS = (
    (SAVE | TO_BYTES | TO_MSGPACK | TO_STATE_DICT | FROM_STATE_DICT | COPY | MAP_TREES)
    | frozenset(HAND_THROUGH)
    | full_names("builtins", "isinstance type print")
)
"""Functions out of view that do not ask a dict for its keys."""


def looked_into(facts: Facts, objects: Iterable[LegacyObject]) -> list[Use]:
    """The places where state dicts of some optimizers are looked into; one in a line."""
    asked = {replace(obj, kind=KIND) for obj in objects if obj.kind == "optimizer"}
    found: dict[tuple[Unit, int], Use] = {}
    called = facts.flow.engine.index.called
    for call in (call for word in MAKING for call in called.get(word, ())):
        if asked.isdisjoint(_dicts(facts, call)):
            continue
        # where they may stand, or what holds them, by the text
        for unit, node in facts.flow.stands_at(call):
            line = unit, node.lineno
            if line not in found and _looks_into(facts, unit, node):
                dicts = tuple(obj for obj in _dicts(facts, node) if obj in asked)
                if dicts:
                    found[line] = Use(KIND, "", unit, node, dicts)
    return list(found.values())


def _dicts(facts: Facts, node: ast.expr) -> dict[LegacyObject, None]:
    """The state dicts that an expression is, or holds.

    In a container of which `to_state_dict` makes a dict, they are the optimizers.
    """
    carried = facts.flow.carried(facts.flow.places[node], Container)
    within = (obj for obj in carried if obj.kind in (KIND, "optimizer"))
    found = [*facts.legacy_objects(node, KIND), *within]
    return {replace(obj, kind=KIND): None for obj in found}


def _looks_into(facts: Facts, unit: Unit, node: ast.expr) -> bool:
    """Whether what is around an expression asks it for its keys."""
    child: ast.AST = node
    for parent in unit.ancestors(node):
        match parent:
            # {"optimizer": state_dict}, not {**state_dict}
            case ast.Dict(values=values) if parent.keys[values.index(child)] is None:  # type: ignore[arg-type]
                return True
            case ast.Dict() | ast.List() | ast.Tuple() | ast.keyword(arg=str()):
                child = parent
                continue
            case ast.Subscript(value=value, slice=key) if value is child:
                return not isinstance(key, ast.Constant) or key.value not in KNOWN_KEYS
            case ast.Call(func=function):
                return function is not child and _asks(facts, parent)
            # state_dict.update(other) is looked at there
            case ast.Attribute(attr=name):
                return name in ("items", "keys", "values")
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return True
            case ast.keyword() | ast.Starred() | ast.For() | ast.comprehension():
                return True
        break
    return False


def _asks(facts: Facts, call: ast.AST) -> bool:
    """Whether a function that is not in view may read the keys of an argument."""
    if not isinstance(call, ast.Call) or last_word(call.func) == "restore_state":
        return False
    kinds = (Function, Method, Partial, Class)
    if any(isinstance(item, kinds) for item in facts.objects(call.func)):
        return False
    names = {*facts.externals(call.func), *facts.flow.origin_names(call.func)}
    return OBLIVIOUS.isdisjoint(names)
