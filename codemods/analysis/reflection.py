"""Legacy objects and modules that are reached by a name in a string, or by a pattern."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.evidence import last_word
from codemods.analysis.legacy import DEFINITIONS, RUN_TIME, legacy_name
from codemods.analysis.queries import Queries
from codemods.analysis.uses import ATTRIBUTES, Use
from codemods.flow.binding import values_of
from codemods.flow.objects import Class, Result, Thing
from codemods.sources.modules import Unit
from codemods.vocabulary import FILL, READ_PLAIN, STORE

BY_NAME = ("builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.delattr")
PATCHING = ("setattr", "delattr", "object", "patch")
"""How functions are called that set an attribute: of Python, `unittest.mock` and pytest."""

EVALUATING = frozenset(("builtins.eval", "builtins.exec", "builtins.compile"))
PARTS = re.compile(r"\.(?:target|state|optimizer_def|apply_gradient)\b")
WHOLE = ("builtins.vars", "dataclasses.replace", "dataclasses.fields")
IMPORTING = ("importlib.import_module", "builtins.__import__", "importlib.util.find_spec")
ADDED = {
    "optimizer": frozenset(("step", "params", "tx", "opt_state", "apply_fn", "apply_gradients")),
    "definition": frozenset(
        ("init", "update", "count", "index", "_fields", "__len__", "__iter__", "__getitem__")
    ),
    "traversal": frozenset(("__call__", "__name__")),
}
"""Attributes that legacy objects lacked, and what takes their place has."""

TELLING = ("target", "optimizer_def", "apply_gradient", "param_states")
"""Attributes that hardly anything but an optimizer has."""


def reflections(facts: Queries, unit: Unit, node: ast.AST) -> list[Use]:
    """The uses that a call, a subscript or a pattern is."""
    stored = _stored(facts, unit, node) if isinstance(node, ast.Call) else []
    found = _patch(facts, unit, node) or _reflection(facts, unit, node)
    return stored if found is None else [*stored, found]


def _patch(facts: Queries, unit: Unit, node: ast.AST) -> Use | None:
    """An attribute of a legacy class or module that is set or deleted, for all that is made by it."""
    match node:
        case ast.Attribute(value=owner, attr=attribute, ctx=ast.Store() | ast.Del()):
            names = [
                *facts.externals(owner),
                *(f"{name}.{attribute}" for name in facts.externals(owner)),
            ]
        case ast.Call(func=function, args=[owner, ast.Constant(value=str()), *_]) if (
            last_word(function) in PATCHING
        ):
            names = facts.externals(owner)
        case ast.Call(func=function, args=[ast.Constant(value=str(text)), *_]) if (
            last_word(function) in PATCHING
        ):
            names = [text]
        case _:
            return None
    patched = {
        name.partition(".")[0] for found in names if (name := legacy_name(found)) is not None
    }
    if not patched:
        return None
    of_class = {*patched, "custom", RUN_TIME} if patched <= {*DEFINITIONS} else None
    made = (
        thing
        for _, call in facts.flow.reading.calls
        for thing in facts.things(call)
        if thing.node is call
    )
    near = (thing for thing in made if thing.unit.path in facts.together(unit))
    things = (
        thing
        for thing in near
        if of_class is None or thing.kind != "definition" or thing.name in of_class
    )
    return Use("patched", ", ".join(sorted(patched)), unit, node, tuple(dict.fromkeys(things)))


def _stored(facts: Queries, unit: Unit, call: ast.Call) -> list[Use]:
    """The optimizers that a call stores; the call itself, if it restores one."""
    called = set(facts.externals(call.func))
    if not called & (STORE | FILL):
        return []
    held = [(argument, things) for argument in values_of(call) for things in _met(facts, argument)]
    uses = [
        Use("stored", ast.unparse(argument), unit, argument, things) for argument, things in held
    ]
    if not held or not called & FILL:
        return uses
    return [*uses, Use("restored", ast.unparse(call.func), unit, call, held[0][1])]


def _met(facts: Queries, argument: ast.expr) -> list[tuple[Thing, ...]]:
    """The optimizers that an argument is; each for itself, those that a container holds."""
    direct = tuple(facts.things(argument, "optimizer"))
    held = [
        thing for thing in facts.within(facts.flow.places[argument]) if thing.kind == "optimizer"
    ]
    return [direct] if direct else [(thing,) for thing in held]


def _reflection(facts: Queries, unit: Unit, node: ast.AST) -> Use | None:
    match node:
        case ast.Call(args=[first, *_]):
            return _call(facts, unit, node, first)
        case ast.Subscript(value=value, slice=ast.Constant(value="target" | "state" as key)):
            things = tuple(facts.things(value, "optimizer", "state_dict"))
            if _is_restored(facts, value) and (
                key == "target" or _names_a_part(unit.parents.get(node))
            ):
                return Use("checkpoint", key, unit, node, ())
            return Use("state_dict", key, unit, node, things) if things else None
        case ast.Subscript(value=value, slice=ast.Constant(value=str())) if facts.externals(value):
            if any(legacy_name(name) is not None for name in facts.externals(node)):
                return Use("module", "", unit, node, _asked_for(facts, unit))
        case ast.Attribute(value=value, attr="__dict__" | "__class__" as name):
            things = tuple(facts.things(value, "optimizer", "state"))
            return Use("reflection", name, unit, node, things) if things else None
        case ast.MatchClass(cls=cls, kwd_attrs=names):
            return _pattern(facts, unit, node, cls, names)
        case ast.Compare(
            left=ast.Constant(value="target"), ops=[ast.In() | ast.NotIn()], comparators=[value]
        ):
            chooses = isinstance(unit.parents.get(node), ast.IfExp)
            if _is_restored(facts, value) and not chooses:
                return Use("checkpoint", "target", unit, node, ())
    return None


def _pattern(
    facts: Queries, unit: Unit, node: ast.AST, cls: ast.expr, names: list[str]
) -> Use | None:
    """A pattern that asks the subject for attributes by their names."""
    subject = next(outer.subject for outer in unit.ancestors(node) if isinstance(outer, ast.Match))
    things = tuple(
        thing for thing in facts.things(subject) if not ATTRIBUTES[thing.kind].isdisjoint(names)
    )
    is_legacy = any(legacy_name(name) is not None for name in facts.externals(cls))
    return (
        Use("reflection", ", ".join(names), unit, cls, things) if things and not is_legacy else None
    )


def _names_a_part(node: ast.AST | None) -> bool:
    """Whether this reads a part of a legacy optimizer's state by its key."""
    match node:
        case ast.Subscript(slice=ast.Constant(value="step" | "param_states")):
            return True
        case _:
            return False


def _is_restored(facts: Queries, node: ast.expr) -> bool:
    """Whether an expression may hold a checkpoint that was read as plain dicts, or a part of it."""
    return any(isinstance(item, Result) and item.name in READ_PLAIN for item in facts.objects(node))


def _call(facts: Queries, unit: Unit, node: ast.Call, first: ast.expr) -> Use | None:
    called = set(facts.externals(node.func))
    things: list[Thing] = [
        thing for thing, name in facts.flow.got.get(node, ()) if name in ATTRIBUTES[thing.kind]
    ]
    name = _literal(node.args[1]) if len(node.args) > 1 else None
    if called & set(BY_NAME) and len(node.args) > 1:
        if name == "optim" and "flax" in facts.externals(first):
            return Use("module", "", unit, node, _asked_for(facts, unit))
        kinds = {kind: {*own, *ADDED.get(kind, ())} for kind, own in ATTRIBUTES.items()}
        things = [
            thing for thing in facts.things(first) if name is None or name in kinds[thing.kind]
        ]
    elif called & set(WHOLE):
        things = facts.things(first, "optimizer", "state")
    elif called & set(IMPORTING) and any(
        legacy_name(name) is not None for name in (_literal(first) or "", *facts.externals(node))
    ):
        return Use("module", "", unit, node, _asked_for(facts, unit))
    elif "builtins.isinstance" in called and len(node.args) == 2:
        name = next(_asked_by_protocol(facts, node.args[1]), None)
        things = facts.things(first, "optimizer") if name is not None else []
    elif "operator.attrgetter" in called and set(TELLING) & set((_literal(first) or "").split(".")):
        return Use("reflection", str(_literal(first)), unit, node, tuple(things))
    things += _in_text(facts, unit, node)
    return Use("reflection", str(name), unit, node, tuple(things)) if things else None


def _asked_by_protocol(facts: Queries, node: ast.expr) -> Iterator[str]:
    """The attributes of legacy optimizers that a protocol of the project asks for."""
    for item in facts.objects(node):
        if isinstance(item, Class) and facts.derives_from(
            item, "typing.Protocol", "typing_extensions.Protocol"
        ):
            asked = {*item.scope.names, *facts.flow.fields_in_order(item)}
            yield from sorted((ATTRIBUTES["optimizer"] | ADDED["optimizer"]) & asked)


def _asked_for(facts: Queries, unit: Unit) -> tuple[Thing, ...]:
    """The definitions that hang on whether, and by which way, there is a module `flax.optim`: those of the same file at least."""
    calls = (call for owner, call in facts.flow.reading.calls if owner is unit)
    made = (
        thing for call in calls for thing in facts.things(call, "definition") if thing.node is call
    )
    return tuple(dict.fromkeys((*made, *facts.made_by_modules)))


def _in_text(facts: Queries, unit: Unit, node: ast.Call) -> tuple[Thing, ...]:
    """The things of which a text asks an attribute: code that is evaluated, a format, or `getattr` that is handed on."""
    called = set(facts.externals(node.func))
    match node:
        case ast.Call(args=[ast.Constant(value=str() as code), *_]) if (
            called & EVALUATING and PARTS.search(code)
        ):
            return tuple(_made_in(facts, unit))
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")
        ) if PARTS.search(text):
            return tuple(thing for argument in node.args for thing in facts.things(argument))
    handed_on = any("builtins.getattr" in facts.externals(argument) for argument in node.args)
    return (
        tuple(thing for argument in node.args for thing in facts.things(argument))
        if handed_on
        else ()
    )


def _made_in(facts: Queries, unit: Unit) -> list[Thing]:
    """The optimizers that the calls of a file make."""
    calls = [call for owner, call in facts.flow.reading.calls if owner is unit]
    return [
        thing for call in calls for thing in facts.things(call, "optimizer") if thing.node is call
    ]


def _literal(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
