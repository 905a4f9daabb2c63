"""Which dataclasses may derive from `TrainState`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.flow.binding import values_of
from codemods.flow.library import PRYING
from codemods.flow.objects import Class, Derivative, External, Function, Method, Object, Partial
from codemods.idioms import Unproven
from codemods.idioms.counters import Counters
from codemods.idioms.own_states.draft import STEP, Draft
from codemods.rewriting.edits import DeriveState
from codemods.sources.modules import Unit
from codemods.vocabulary import FROM_STATE_DICT, STORE, STRUCT, TO_STATE_DICT

TAKEN = (
    "params",
    "tx",
    "opt_state",
    "apply_fn",
    "create",
    "apply_gradients",
    "replace",
    "cls",
    "grads",
)
"""What a `TrainState` has beside its step, and what its methods call their arguments."""

BY_NAME = TO_STATE_DICT | FROM_STATE_DICT | PRYING | {"builtins.getattr"}
"""What may read or set fields by names that are given as words."""

BY_CLASS = ("builtins.isinstance", "builtins.issubclass")


def check_class(draft: Draft) -> None:
    """Raises `Unproven` if a class may not."""
    node = draft.cls.node
    decorated = [name for one in node.decorator_list for name in draft.facts.externals(one)]
    full = [draft.facts.full_name(one) for one in node.decorator_list]
    if (
        len(node.decorator_list) != 1
        or not ({*decorated, *full} & STRUCT)
        or node.bases
        or node.keywords
    ):
        raise Unproven("it is no plain `flax.struct.dataclass`")
    if draft.cls.scope.names & ({*TAKEN} if draft.counts else {*TAKEN, STEP}):
        raise Unproven("it has a field or method that a `TrainState` has, too")
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    if any(method.name.startswith("__") for method in methods):
        raise Unproven("it has a special method")
    if any(_mentions_field(draft, method) for method in methods):
        raise Unproven("its own methods use the optimizer")
    for heir in draft.facts.flow.reading.classes:
        if heir is not draft.cls and draft.cls in draft.facts.flow.ancestry(heir):
            raise Unproven("another class derives from it")
    for unit, found in _reflections(draft):
        raise Unproven(f"its fields may be listed or read by name at {unit.place(found.lineno)}")
    if draft.counts and Counters(draft.origins).ahead(draft.cls, STEP, draft.name) != 0:
        raise Unproven("its step does not begin at 0")


def _mentions_field(draft: Draft, method: ast.FunctionDef) -> bool:
    """Whether a method names the field, or does more with the instance than to read attributes of it."""
    parents = draft.cls.unit.parents
    instance = {argument.arg for argument in method.args.args[:1]}
    for inner in ast.walk(method):
        if isinstance(inner, ast.Attribute) and (
            inner.attr == draft.name or inner.attr.startswith("__")
        ):
            return True
        if (
            isinstance(inner, ast.Name)
            and inner.id in instance
            and not isinstance(parents[inner], ast.Attribute)
        ):
            return True
    return False


def _reflections(draft: Draft) -> Iterator[tuple[Unit, ast.expr | ast.pattern]]:
    """Where an instance or the class itself goes to something that may ask for its fields."""
    reading = draft.facts.flow.reading
    for unit, call in reading.calls:
        if any(_is_meant(draft, value) for value in values_of(call)) and not _is_blind(draft, call):
            yield unit, call
    for unit, node in reading.attributes:
        if _is_meant(draft, node.value) and node.attr not in {*draft.cls.scope.names, "replace"}:
            yield unit, node
    for unit in draft.facts.project.units:
        for inner in unit.nodes:
            if isinstance(inner, ast.MatchClass) and draft.cls in draft.facts.objects(inner.cls):
                yield unit, inner


def _is_meant(draft: Draft, node: ast.expr) -> bool:
    """Whether an expression may be an instance of the class, or the class."""
    return draft.is_one(node) or draft.cls in draft.facts.objects(node)


def _is_blind(draft: Draft, call: ast.Call) -> bool:
    """Whether a call is of functions in view, or of those of which it is known that they do not ask for fields."""
    called = list(draft.facts.objects(call.func))
    return bool(called) and all(_is_blind_function(draft, item) for item in called)


def _is_blind_function(draft: Draft, function: Object) -> bool:
    if not isinstance(function, External):
        return isinstance(function, Function | Method | Class | Partial | Derivative)
    known = (
        function.name in (*BY_CLASS, *STORE)
        or draft.facts.flow.library.function(function.name) is not None
    )
    return known and function.name not in (*BY_NAME, "builtins.vars")


def change_class(draft: Draft) -> None:
    """Let the class derive from `TrainState`."""
    unit = draft.cls.unit
    draft.result.edits.put(
        draft.cls.node, unit, DeriveState(unit.span(draft.cls.node), draft.dropped)
    )
