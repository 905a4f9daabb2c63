"""Legacy objects and modules that are reached by a name in a string, or by a pattern."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum

from codemods.analysis.evidence import last_word
from codemods.analysis.legacy import DEFINITIONS, Unnamed, legacy_name
from codemods.analysis.queries import Queries
from codemods.analysis.uses import ATTRIBUTES, Use
from codemods.flow.binding import values_of
from codemods.flow.objects import Class, LegacyObject, Result
from codemods.sources.modules import Unit
from codemods.vocabulary import FILL, READ_PLAIN, STORE

BY_NAME = (
    "builtins.getattr",
    "builtins.hasattr",
    "builtins.setattr",
    "builtins.delattr",
)
PATCHING = ("setattr", "delattr", "object", "patch")
"""The names of functions that assign an attribute: of Python, `unittest.mock` and pytest."""

EVALUATING = frozenset(("builtins.eval", "builtins.exec", "builtins.compile"))
PARTS = re.compile(r"\.(?:target|state|optimizer_def|apply_gradient)\b")
WHOLE = ("builtins.vars", "dataclasses.replace", "dataclasses.fields")
IMPORTING = (
    "importlib.import_module",
    "builtins.__import__",
    "importlib.util.find_spec",
)
ADDED = {
    "optimizer": frozenset(
        ("step", "params", "tx", "opt_state", "apply_fn", "apply_gradients")
    ),
    "definition": frozenset(
        (
            "init",
            "update",
            "count",
            "index",
            "_fields",
            "__len__",
            "__iter__",
            "__getitem__",
        )
    ),
    "traversal": frozenset(("__call__", "__name__")),
}
"""Attributes that legacy objects did not have, but their replacements have."""

TELLING = ("target", "optimizer_def", "apply_gradient", "param_states")
"""Attributes that hardly any other object than an optimizer has."""


def reflections(facts: Queries, unit: Unit, node: ast.AST) -> list[Use]:
    """The uses that a call, a subscript or a pattern is."""
    stored = _stored(facts, unit, node) if isinstance(node, ast.Call) else []
    found = _patch(facts, unit, node) or _reflection(facts, unit, node)
    return stored if found is None else [*stored, found]


def _patch(facts: Queries, unit: Unit, node: ast.AST) -> Use | None:
    """An attribute of a legacy class or module that is assigned or deleted.

    That is a use of everything that the class or module makes.
    """
    if not isinstance(node, ast.Attribute | ast.Call):
        return None
    names = (legacy_name(found) for found in _patched(facts, node))
    patched = {str(name).partition(".")[0] for name in names if name is not None}
    if not patched:
        return None
    classes: set[str | Enum | None] | None = None
    if patched <= {*DEFINITIONS}:
        classes = {*patched, Unnamed.CUSTOM, Unnamed.RUN_TIME}
    objects: dict[LegacyObject, None] = {}
    program = facts.together(unit)
    for _, call in facts.flow.reading.calls:
        for obj in facts.legacy_objects(call):
            if obj.node is not call or obj.unit.path not in program:
                continue
            if classes is None or obj.kind != "definition" or obj.made_by in classes:
                objects[obj] = None
    return Use("patched", ", ".join(sorted(patched)), unit, node, tuple(objects))


def _patched(facts: Queries, node: ast.AST) -> list[str]:
    """The full names of what a node assigns an attribute of, or deletes."""
    match node:
        # optim.Adam = MyAdam
        case ast.Attribute(value=owner, attr=attribute, ctx=ast.Store() | ast.Del()):
            owners = facts.externals(owner)
            return [*owners, *(f"{name}.{attribute}" for name in owners)]
        # mock.patch.object(optim, "Adam", MyAdam)
        case ast.Call(func=function, args=[owner, ast.Constant(value=str()), *_]) if (
            last_word(function) in PATCHING
        ):
            return facts.externals(owner)
        # mock.patch("flax.optim.Adam", MyAdam)
        case ast.Call(func=function, args=[ast.Constant(value=str(text)), *_]) if (
            last_word(function) in PATCHING
        ):
            return [text]
    return []


def _stored(facts: Queries, unit: Unit, call: ast.Call) -> list[Use]:
    """The optimizers that a call stores; the call itself, if it restores one."""
    called = set(facts.externals(call.func))
    if not called & (STORE | FILL):
        return []
    found = [
        (argument, objects)
        for argument in values_of(call)
        for objects in _optimizers_in(facts, argument)
    ]
    uses = [
        Use("stored", ast.unparse(argument), unit, argument, objects)
        for argument, objects in found
    ]
    if not found or not called & FILL:
        return uses
    return [*uses, Use("restored", ast.unparse(call.func), unit, call, found[0][1])]


def _optimizers_in(
    facts: Queries, argument: ast.expr
) -> list[tuple[LegacyObject, ...]]:
    """The optimizers that an argument may be; one by one those that a container holds."""
    direct = tuple(facts.legacy_objects(argument, "optimizer"))
    if direct:
        return [direct]
    within = facts.within(facts.flow.places[argument])
    return [(obj,) for obj in within if obj.kind == "optimizer"]


def _reflection(facts: Queries, unit: Unit, node: ast.AST) -> Use | None:
    match node:
        # getattr(optimizer, "target")
        case ast.Call(args=[first, *_]):
            return _call(facts, unit, node, first)
        # state_dict["target"]
        case ast.Subscript(
            value=value, slice=ast.Constant(value="target" | "state" as key)
        ):
            is_part = key == "target" or _names_a_part(unit.parents.get(node))
            objects = tuple(facts.legacy_objects(value, "optimizer", "state_dict"))
            if is_part and _is_restored(facts, value):
                return Use("checkpoint", key, unit, node, ())
            return Use("state_dict", key, unit, node, objects) if objects else None
        # sys.modules["flax.optim"]
        case ast.Subscript(value=value, slice=ast.Constant(value=str())) if (
            facts.externals(value)
        ):
            if any(legacy_name(name) is not None for name in facts.externals(node)):
                return Use("module", "", unit, node, _definitions_of(facts, unit))
        # optimizer.__dict__
        case ast.Attribute(value=value, attr="__dict__" | "__class__" as name):
            objects = tuple(facts.legacy_objects(value, "optimizer", "state"))
            return Use("reflection", name, unit, node, objects) if objects else None
        # case object(target=params):
        case ast.MatchClass(cls=cls, kwd_attrs=names):
            return _pattern(facts, unit, node, cls, names)
        # "target" in checkpoint
        case ast.Compare(
            left=ast.Constant(value="target"),
            ops=[ast.In() | ast.NotIn()],
            comparators=[value],
        ):
            chooses = isinstance(unit.parents.get(node), ast.IfExp)
            if _is_restored(facts, value) and not chooses:
                return Use("checkpoint", "target", unit, node, ())
    return None


def _pattern(
    facts: Queries, unit: Unit, node: ast.AST, cls: ast.expr, names: list[str]
) -> Use | None:
    """A pattern that reads attributes of the subject by their names."""
    subject = next(
        outer.subject for outer in unit.ancestors(node) if isinstance(outer, ast.Match)
    )
    objects = tuple(
        obj
        for obj in facts.legacy_objects(subject)
        if not ATTRIBUTES[obj.kind].isdisjoint(names)
    )
    is_legacy = any(legacy_name(name) is not None for name in facts.externals(cls))
    if not objects or is_legacy:
        return None
    return Use("reflection", ", ".join(names), unit, cls, objects)


def _names_a_part(node: ast.AST | None) -> bool:
    """Whether this reads a part of a legacy optimizer's state by its key."""
    match node:
        case ast.Subscript(slice=ast.Constant(value="step" | "param_states")):
            return True
        case _:
            return False


def _is_restored(facts: Queries, node: ast.expr) -> bool:
    """Whether an expression may hold a checkpoint that was read as plain dicts, or a part of it."""
    return any(
        isinstance(item, Result) and item.name in READ_PLAIN
        for item in facts.objects(node)
    )


def _call(facts: Queries, unit: Unit, node: ast.Call, first: ast.expr) -> Use | None:
    called = set(facts.externals(node.func))
    objects: list[LegacyObject] = [
        obj
        for obj, name in facts.flow.got.get(node, ())
        if name in ATTRIBUTES[obj.kind]
    ]
    name = _literal(node.args[1]) if len(node.args) > 1 else None
    # getattr(flax, "optim"), getattr(optimizer, "target")
    if called & set(BY_NAME) and len(node.args) > 1:
        if name == "optim" and "flax" in facts.externals(first):
            return Use("module", "", unit, node, _definitions_of(facts, unit))
        objects = _with_attribute(facts, first, name)
    # vars(optimizer)
    elif called & set(WHOLE):
        objects = facts.legacy_objects(first, "optimizer", "state")
    # importlib.import_module("flax.optim")
    elif called & set(IMPORTING) and _imports_legacy(facts, node, first):
        return Use("module", "", unit, node, _definitions_of(facts, unit))
    # isinstance(optimizer, HasTarget), of a protocol
    elif "builtins.isinstance" in called and len(node.args) == 2:
        name = next(_asked_by_protocol(facts, node.args[1]), None)
        objects = facts.legacy_objects(first, "optimizer") if name is not None else []
    # operator.attrgetter("state.step")
    elif "operator.attrgetter" in called and set(TELLING) & set(
        (_literal(first) or "").split(".")
    ):
        return Use("reflection", str(_literal(first)), unit, node, tuple(objects))
    objects += _in_text(facts, unit, node)
    return Use("reflection", str(name), unit, node, tuple(objects)) if objects else None


def _with_attribute(
    facts: Queries, node: ast.expr, name: str | None
) -> list[LegacyObject]:
    """The objects at an expression for which an attribute means something, old or new."""
    if name is None:
        return facts.legacy_objects(node)
    return [
        obj
        for obj in facts.legacy_objects(node)
        if name in ATTRIBUTES[obj.kind] or name in ADDED.get(obj.kind, ())
    ]


def _imports_legacy(facts: Queries, call: ast.Call, first: ast.expr) -> bool:
    names = (_literal(first) or "", *facts.externals(call))
    return any(legacy_name(name) is not None for name in names)


def _asked_by_protocol(facts: Queries, node: ast.expr) -> Iterator[str]:
    """The attributes of legacy optimizers that a protocol of the project asks for."""
    protocols = ("typing.Protocol", "typing_extensions.Protocol")
    for item in facts.objects(node):
        if isinstance(item, Class) and facts.derives_from(item, *protocols):
            members = {*item.scope.names, *facts.flow.fields_in_order(item)}
            yield from sorted((ATTRIBUTES["optimizer"] | ADDED["optimizer"]) & members)


def _definitions_of(facts: Queries, unit: Unit) -> tuple[LegacyObject, ...]:
    """The definitions that may depend on how the module `flax.optim` is imported in a file.

    They are those of the file, and those of modules in variables.
    """
    calls = (call for owner, call in facts.flow.reading.calls if owner is unit)
    made = (
        obj
        for call in calls
        for obj in facts.legacy_objects(call, "definition")
        if obj.node is call
    )
    return tuple(dict.fromkeys((*made, *facts.made_by_modules)))


def _in_text(facts: Queries, unit: Unit, node: ast.Call) -> tuple[LegacyObject, ...]:
    """The objects whose attributes a text reads, or a `getattr` that is handed on."""
    called = set(facts.externals(node.func))
    match node:
        # eval("optimizer.target")
        case ast.Call(args=[ast.Constant(value=str() as code), *_]) if (
            called & EVALUATING and PARTS.search(code)
        ):
            return tuple(_made_in(facts, unit))
        # "{0.target}".format(optimizer)
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")
        ) if PARTS.search(text):
            return _given(facts, node)
    # functools.partial(getattr, optimizer)
    if any("builtins.getattr" in facts.externals(argument) for argument in node.args):
        return _given(facts, node)
    return ()


def _given(facts: Queries, call: ast.Call) -> tuple[LegacyObject, ...]:
    """The objects that the arguments of a call may be."""
    return tuple(
        obj for argument in call.args for obj in facts.legacy_objects(argument)
    )


def _made_in(facts: Queries, unit: Unit) -> list[LegacyObject]:
    """The optimizers that the calls of a file make."""
    calls = [call for owner, call in facts.flow.reading.calls if owner is unit]
    return [
        obj
        for call in calls
        for obj in facts.legacy_objects(call, "optimizer")
        if obj.node is call
    ]


def _literal(node: ast.expr) -> str | None:
    return (
        node.value
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        else None
    )
