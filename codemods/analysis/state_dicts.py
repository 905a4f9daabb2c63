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
    Object,
    Partial,
)
from codemods.inference.out_of_view import DESCRIBING, effect_of
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
    UNFLATTEN,
    full_names,
)

KIND = "state_dict"
MAKING = ("to_state_dict", "asdict", "state_dict")
"""The functions and methods that make a state dict of an optimizer."""

KNOWN_KEYS = ("target", "state")
OBLIVIOUS = (
    (SAVE | TO_BYTES | TO_MSGPACK | TO_STATE_DICT | FROM_STATE_DICT | COPY | MAP_TREES)
    | (UNFLATTEN | frozenset(HAND_THROUGH))
    | (full_names("builtins", "isinstance len print type") | DESCRIBING)
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
            if line in found:
                continue
            dicts = tuple(obj for obj in _read(facts, unit, node) if obj in asked)
            if dicts:
                found[line] = Use(KIND, "", unit, node, dicts)
    return list(found.values())


def _dicts(facts: Facts, node: ast.expr) -> dict[LegacyObject, None]:
    """The state dicts that an expression is, or holds."""
    carried = facts.flow.carried(facts.flow.places.read(node), Container)
    return _of_optimizers([*facts.legacy_objects(node, KIND), *carried])


def _of_optimizers(found: Iterable[Object]) -> dict[LegacyObject, None]:
    """The state dicts among some objects.

    In a container of which `to_state_dict` makes a dict, they are the optimizers.
    """
    return {
        replace(obj, kind=KIND): None
        for obj in found
        if isinstance(obj, LegacyObject) and obj.kind in (KIND, "optimizer")
    }


def _read(facts: Facts, unit: Unit, node: ast.expr) -> Iterable[LegacyObject]:
    """The state dicts that what is around an expression asks for their keys."""
    child = node
    for parent in unit.ancestors(node):
        match parent:
            # {"optimizer": state_dict}, [state_dict], not {**state_dict}
            case ast.Dict(keys=keys, values=values) if (
                child in values and keys[values.index(child)] is not None
            ):
                child = parent
            case ast.List() | ast.Tuple():
                child = parent
            case ast.keyword(arg=str()):
                continue
            # saved["optimizer"], of which keys are asked further out
            case ast.Subscript(value=value) if value is node and not any(
                _of_optimizers(facts.objects(node))
            ):
                child = node = parent
            case ast.Call(func=function) if function is not node:
                if _is_oblivious(facts, function):
                    return ()
                # pool.keep([state_dict]), not zip(names, [state_dict])
                if _looks_within(facts, function):
                    return _dicts(facts, node)
                return _of_optimizers(facts.objects(node)) if child is node else ()
            case _:
                is_read = child is node and _asks(parent, node)
                return _of_optimizers(facts.objects(node)) if is_read else ()
    return ()


def _asks(parent: ast.AST, node: ast.expr) -> bool:
    """Whether what an expression is part of asks it for its keys."""
    match parent:
        case ast.Subscript(value=value, slice=key):
            is_known = isinstance(key, ast.Constant) and key.value in KNOWN_KEYS
            return value is node and not is_known
        # state_dict.update(other) is looked at there
        case ast.Attribute(attr=name):
            return name in ("get", "items", "keys", "pop", "setdefault", "values")
        case ast.Compare(ops=[ast.In() | ast.NotIn()]):
            return True
        case ast.Dict() | ast.keyword() | ast.Starred():
            return True
        case ast.For() | ast.comprehension():
            return True
    return False


def _is_oblivious(facts: Facts, function: ast.expr) -> bool:
    """Whether a function does not ask an argument for its keys, or is in view."""
    kinds = (Function, Method, Partial, Class)
    is_in_view = any(isinstance(item, kinds) for item in facts.objects(function))
    # structure.unflatten(values) has the keys of the structure
    if is_in_view or last_word(function) in ("restore_state", "unflatten"):
        return True
    return not OBLIVIOUS.isdisjoint(_names(facts, function))


def _looks_within(facts: Facts, function: ast.expr) -> bool:
    """Whether a function may read the keys of what its argument holds."""
    names = _names(facts, function)
    return not all(
        effect_of(name) == "contents" or name.startswith("numpy.") for name in names
    )


def _names(facts: Facts, function: ast.expr) -> set[str]:
    return {*facts.externals(function), *facts.flow.origin_names(function)}
