"""Which dataclasses may derive from `TrainState`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.reflection import is_restored
from codemods.idioms import Unproven
from codemods.idioms.counters import Counters
from codemods.idioms.own_states.state import STEP, OwnState
from codemods.inference.binding import values_of
from codemods.inference.library import PRYING
from codemods.inference.objects import (
    Class,
    Derivative,
    External,
    Function,
    Method,
    Object,
    Partial,
)
from codemods.rewriting.edits import DeriveState
from codemods.sources.modules import Unit
from codemods.vocabulary import FROM_STATE_DICT, STORE, STRUCT, TO_STATE_DICT, words

TAKEN = words("params tx opt_state apply_fn create apply_gradients replace cls grads")
"""What a `TrainState` has beside its step, and what its methods call their arguments."""

BY_NAME = TO_STATE_DICT | FROM_STATE_DICT | PRYING | {"builtins.getattr"}
"""What may read or set fields by names that are given as words."""

BY_CLASS = ("builtins.isinstance", "builtins.issubclass")


def check_class(draft: OwnState) -> None:
    """Raises `Unproven` if a class may not derive from `TrainState`."""
    node = draft.cls.node
    if not _is_plain(draft):
        raise Unproven("it is no plain `flax.struct.dataclass`")
    taken = {*TAKEN} if draft.counts else {*TAKEN, STEP}
    if draft.cls.scope.names & taken:
        raise Unproven("it has a field or method that a `TrainState` has, too")
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    if any(method.name.startswith("__") for method in methods):
        raise Unproven("it has a special method")
    if any(_mentions_field(draft, method) for method in methods):
        raise Unproven("its own methods use the optimizer")
    flow = draft.facts.flow
    for heir in flow.reading.classes:
        if heir is not draft.cls and draft.cls in flow.ancestry(heir):
            raise Unproven("another class derives from it")
    for unit, found in _reflections(draft):
        where = unit.location(found.lineno)
        raise Unproven("its fields may be listed or read by name at {}", where)
    for unit, found in _read_keys(draft):
        where = unit.location(found.lineno)
        raise Unproven("the optimizer of a checkpoint is read by its key at {}", where)
    if not draft.counts:
        return
    # its `step` becomes that of the train state
    ahead = Counters(draft.origins).ahead(draft.cls, STEP, draft.name)
    if ahead != 0:
        raise Unproven("its step does not begin at 0")


def _is_plain(draft: OwnState) -> bool:
    """Whether a class has the decorator `flax.struct.dataclass`, and neither others nor bases."""
    node = draft.cls.node
    if len(node.decorator_list) != 1 or node.bases or node.keywords:
        return False
    [decorator] = node.decorator_list
    names = {*draft.facts.externals(decorator), draft.facts.full_name(decorator)}
    return not names.isdisjoint(STRUCT)


def _mentions_field(draft: OwnState, method: ast.FunctionDef) -> bool:
    """Whether a method names the field, or uses the instance other than to read attributes."""
    parents = draft.cls.unit.parents
    instance = {argument.arg for argument in method.args.args[:1]}
    for inner in ast.walk(method):
        match inner:
            # self.optimizer, or self.__dict__
            case ast.Attribute(attr=name):
                if name == draft.name or name.startswith("__"):
                    return True
            # show(self)
            case ast.Name(id=name) if name in instance:
                if not isinstance(parents[inner], ast.Attribute):
                    return True
    return False


def _reflections(draft: OwnState) -> Iterator[tuple[Unit, ast.expr | ast.pattern]]:
    """Where an instance or the class itself goes to something that may read its fields by name."""
    reading = draft.facts.flow.reading
    # dataclasses.asdict(state)
    for unit, call in reading.calls:
        if not _is_blind(draft, call) and any(
            _is_meant(draft, value) for value in values_of(call)
        ):
            yield unit, call
    # state.__dict__
    known = {*draft.cls.scope.names, "replace"}
    for unit, node in reading.attributes:
        if node.attr not in known and _is_meant(draft, node.value):
            yield unit, node
    # match state: case State(step, optimizer): …
    for unit in draft.facts.project.units:
        for inner in unit.nodes:
            if not isinstance(inner, ast.MatchClass):
                continue
            if draft.cls in draft.facts.objects(inner.cls):
                yield unit, inner


def _read_keys(draft: OwnState) -> Iterator[tuple[Unit, ast.expr]]:
    """Where any program asks a checkpoint that it read as plain dicts for the optimizer's field."""
    for unit in draft.facts.project.units:
        for node in unit.nodes:
            match node:
                # restored["optimizer"], restored.get("optimizer"), "optimizer" in restored
                case (
                    ast.Subscript(value=restored, slice=ast.Constant(value=key))
                    | ast.Call(
                        func=ast.Attribute(value=restored),
                        args=[ast.Constant(value=key), *_],
                    )
                    | ast.Compare(
                        left=ast.Constant(value=key),
                        ops=[ast.In() | ast.NotIn()],
                        comparators=[restored],
                    )
                ) if key == draft.name and is_restored(draft.facts, restored):
                    yield unit, node


def _is_meant(draft: OwnState, node: ast.expr) -> bool:
    """Whether an expression may be an instance of the class, or the class."""
    return draft.is_one(node) or draft.cls in draft.facts.objects(node)


def _is_blind(draft: OwnState, call: ast.Call) -> bool:
    """Whether a call is of functions in view, or of those that are known to read no fields."""
    called = list(draft.facts.objects(call.func))
    return bool(called) and all(_is_blind_function(draft, item) for item in called)


def _is_blind_function(draft: OwnState, function: Object) -> bool:
    """Whether a function is in view, or reads no fields by name."""
    if not isinstance(function, External):
        return isinstance(function, Function | Method | Class | Partial | Derivative)
    name = function.name
    is_known = draft.facts.flow.library.function(name) is not None
    if not is_known and name not in (*BY_CLASS, *STORE):
        return False
    return name not in (*BY_NAME, "builtins.vars")


def change_class(draft: OwnState) -> None:
    """Let the class derive from `TrainState`."""
    unit, node = draft.cls.unit, draft.cls.node
    draft.edits.put(node, unit, DeriveState(unit.span(node), draft.dropped))
