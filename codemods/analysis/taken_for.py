"""Where it matters that legacy objects were no train states, no tuples and no functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.legacy import legacy_name
from codemods.analysis.queries import Queries
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.inference.holders import unwrapped
from codemods.inference.objects import Container, LegacyObject, Place
from codemods.sources.modules import Unit
from codemods.vocabulary import OF_TREES

TAKEN = "taken for another"
SPREADING = (*OF_TREES, "numpy.")
"""How the names of functions begin that go into tuples among their arguments."""

WEAK = "weakref."
ABSTRACT = (
    "Collection",
    "Container",
    "Iterable",
    "NamedTuple",
    "Reversible",
    "Sequence",
    "Sized",
    "Tuple",
)
TUPLES = frozenset(
    (
        "builtins.tuple",
        *(
            f"{module}.{name}"
            for module in ("typing", "collections.abc")
            for name in ABSTRACT
        ),
    )
)
"""The types of which a tuple is an instance."""

TRANSFORMATIONS = frozenset(
    f"optax.GradientTransformation{more}" for more in ("", "ExtraArgs")
)
TRAIN_STATES = frozenset(("flax.training.train_state.TrainState",))
ITERATING = frozenset(
    f"builtins.{name}"
    for name in ("enumerate", "iter", "len", "list", "set", "sorted", "tuple", "zip")
)


def uses_taken_for_others(facts: Queries) -> list[Use]:
    """The places where a test gives another result for the objects that replace legacy ones."""
    found: list[Use] = []
    for unit in facts.project.units:
        for node in unit.nodes:
            if not isinstance(node, ast.expr | ast.Match):
                continue
            objects = tuple(dict.fromkeys(_tested(facts, unit, node)))
            if objects:
                place = node.subject if isinstance(node, ast.Match) else node
                found.append(Use("whole", TAKEN, unit, place, objects))
    return found


def _tested(
    facts: Queries, unit: Unit, node: ast.expr | ast.Match
) -> Iterable[LegacyObject]:
    match node:
        case ast.Call(func=function):
            return _by_call(facts, unit, node, {*facts.externals(function)})
        # "%s" % definition: a tuple has an item for each `%s`
        case ast.BinOp(op=ast.Mod(), right=formatted):
            return facts.legacy_objects(formatted, "definition")
        case ast.Match(subject=subject, cases=cases):
            return _by_patterns(facts, subject, [case.pattern for case in cases])
        # weakref.WeakKeyDictionary()[definition]
        case ast.Subscript(value=owner, slice=key):
            objects = facts.legacy_objects(key, "definition")
            return objects if objects and _is_weak(facts, owner) else ()
        # try: (*definition,)
        case ast.Starred(value=value) if _is_tried(unit, node):
            return facts.legacy_objects(value, "definition")
    return ()


def _by_patterns(
    facts: Queries, subject: ast.expr, patterns: Iterable[ast.pattern]
) -> Iterable[LegacyObject]:
    """The objects that the patterns of a `match` may take for another type."""
    parts = [part for pattern in patterns for part in ast.walk(pattern)]
    # case [init, update]:
    if any(isinstance(part, ast.MatchSequence) for part in parts):
        return facts.legacy_objects(subject, "definition")
    found: list[LegacyObject] = []
    for part in parts:
        if isinstance(part, ast.MatchClass):
            found += _of_types(facts, subject, _names(facts, [part.cls]))
    return found


def _by_call(
    facts: Queries, unit: Unit, call: ast.Call, called: set[str]
) -> Iterator[LegacyObject]:
    first = call.args[0] if call.args else None
    # callable(traversal)
    if first is not None and "builtins.callable" in called:
        yield from facts.legacy_objects(first, "traversal")
    # isinstance(definition, tuple)
    elif first is not None and "builtins.isinstance" in called:
        yield from facts.legacy_objects(first, "traversal")
        yield from _of_types(facts, first, _names(facts, call.args[1:]))
    # try: len(definition)
    elif first is not None and called & ITERATING and _is_tried(unit, call):
        yield from facts.legacy_objects(first, "definition")
    # jax.tree_map(f, definition)
    else:
        spreads = any(name.startswith(SPREADING) for name in called)
        if spreads or (facts.imports_weakref and _is_weak(facts, call.func)):
            for argument in map(_unstarred, values_of(call)):
                yield from _definitions(facts, argument)


def _unstarred(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _of_types(
    facts: Queries, node: ast.expr, names: set[str]
) -> Iterator[LegacyObject]:
    """The objects that were of none of these types, but their replacements are."""
    legacy = {legacy_name(name) for name in names}
    if names & (TUPLES | TRANSFORMATIONS) and "OptimizerDef" not in legacy:
        yield from facts.legacy_objects(node, "definition")
    if names & TRAIN_STATES and "Optimizer" not in legacy:
        yield from facts.legacy_objects(node, "optimizer")


def _is_weak(facts: Queries, node: ast.expr) -> bool:
    """Whether this makes or contains weak references, which do not exist for tuples."""
    return any(name.startswith(WEAK) for name in facts.flow.origin_names(node))


def _names(facts: Queries, types: Iterable[ast.expr]) -> set[str]:
    """The names of some types, also in tuples and unions of them."""
    found: set[str] = set()
    for one in types:
        for node in ast.walk(one):
            if isinstance(node, ast.expr):
                found.update(facts.externals(node))
        for item in facts.objects(one):
            if isinstance(item, Container):
                elements = facts.flow.solver.at(("elements", item))
                found.update(getattr(element, "name", "") for element in elements)
    return found


def _definitions(facts: Queries, node: ast.expr) -> Iterator[LegacyObject]:
    """The definitions that an expression may be, or contain."""
    pending: list[Place] = [facts.flow.places.get(node)]
    seen: set[Container] = set()
    while pending:
        for item in map(unwrapped, facts.flow.solver.at(pending.pop())):
            if isinstance(item, LegacyObject) and item.kind == "definition":
                yield item
            elif isinstance(item, Container) and item not in seen:
                seen.add(item)
                pending.append(("elements", item))


def _is_tried(unit: Unit, node: ast.AST) -> bool:
    """Whether an error that an expression raises is caught in its function."""
    for outer in unit.ancestors(node):
        if isinstance(outer, ast.FunctionDef | ast.Lambda):
            return False
        if isinstance(outer, ast.Try) and outer.handlers:
            return True
    return False
