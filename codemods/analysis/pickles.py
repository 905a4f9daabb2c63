"""Where optimizers are pickled, and come out of pickles: a train state holds functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.facts import Facts
from codemods.analysis.queries import Queries
from codemods.analysis.stepping import STEPS
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.inference.control_flow import Owner
from codemods.inference.objects import Container, LegacyObject
from codemods.sources.modules import Unit
from codemods.vocabulary import PICKLE, UNPICKLE

PICKLED, UNPICKLED = "pickled", "unpickled"


def pickles(facts: Facts) -> list[Use]:
    """Where optimizers are given to what pickles them, and where such come out that take steps."""
    found: list[Use] = []
    restored: dict[ast.expr, list[LegacyObject]] = {}
    for unit, call in facts.flow.reading.calls:
        names = facts.names(call.func)
        if names & PICKLE:
            for value in values_of(call):
                found += _pickled(facts, unit, value)
        elif names & UNPICKLE:
            restored[call] = []
    steps = (use for use in facts.uses if restored and use.kind in STEPS)
    for step in steps:
        for origin in facts.flow.sources.origins(facts.flow.places[step.owner]):
            if origin in restored:
                restored[origin] += step.objects
    restored |= _taken_out(facts, restored)
    for node, objects in restored.items():
        if objects:
            own = tuple(dict.fromkeys(objects))
            found.append(Use("whole", UNPICKLED, facts.scope(node).unit, node, own))
    return found


def _taken_out(
    facts: Facts, loads: Iterable[ast.expr]
) -> dict[ast.expr, list[LegacyObject]]:
    """The optimizers in displays that come out of pickles, where they are taken out by a key.

    Those that are not are found where the display comes out.
    """
    held = {one: facts.flow.carried(one, Container) for one in loads}
    held = {one: optimizers for one, optimizers in held.items() if optimizers}
    found: dict[ast.expr, list[LegacyObject]] = {**held}
    for unit in facts.flow.project.units if held else ():
        for node in unit.nodes:
            # settings = pickle.load(file); settings["optimizer"]
            if isinstance(node, ast.Subscript) and is_optimizer(facts, node):
                for origin in facts.flow.sources.origins(facts.flow.places[node.value]):
                    if origin in held:
                        found[node] = facts.legacy_objects(node, "optimizer")
                        found[origin] = []
    return found


def _pickled(facts: Queries, unit: Unit, node: ast.expr) -> Iterator[Use]:
    """The optimizers that are pickled by themselves, or in a display that is."""
    match node:
        case ast.Dict(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _pickled(facts, unit, part)
        # of what is made here, the call itself changes
        case ast.Call(func=ast.Attribute(value=owner)) if facts.legacy_objects(owner):
            return
        case _ if is_optimizer(facts, node):
            objects = tuple(facts.legacy_objects(node))
            yield Use("whole", PICKLED, unit, node, objects)


def is_optimizer(facts: Queries, node: ast.expr) -> bool:
    """Whether an expression is an optimizer, as far as anything is known of it."""
    items = [*facts.objects(node)]
    return bool(items) and all(
        isinstance(item, LegacyObject) and item.kind == "optimizer" for item in items
    )


def held_before(use: Use, facts: Queries) -> str | None:
    """The variable or field that holds an optimizer before it is set to what was pickled."""
    engine, unit = facts.flow.engine, use.unit
    match use.node:
        # pickle.loads(pickle.dumps(optimizer))
        case ast.Call(args=[ast.Call(args=[ast.Name() as held, *_])]) if is_optimizer(
            facts, held
        ):
            return held.id
    statement: ast.AST = use.node
    target: ast.expr | None = None
    match unit.parents.get(use.node):
        case ast.Assign(targets=[target]) as statement:
            pass
        # optimizer, step = settings["optimizer"], settings["step"]
        case ast.Tuple(elts=values) as around:
            match unit.parents.get(around):
                case ast.Assign(targets=[ast.Tuple(elts=targets)]) as statement:
                    target = dict[ast.AST, ast.expr](
                        zip(values, targets, strict=False)
                    ).get(use.node)
    match target:
        case ast.Name(id=name):
            scope = facts.scope(target)
            if not isinstance(scope.node, Owner):
                return None
            order = engine.reaching.order(scope.node)
            for binding in engine.bindings_of(scope, name):
                source = binding.source
                if source is None or binding.steps or binding.node is statement:
                    continue
                number = order.at.get(binding.node)
                is_held = number is not None and is_optimizer(facts, source)
                if is_held and order.dominates(number, order.at[statement]):  # type: ignore[arg-type]
                    return name
        # self.optimizer = pickle.load(file), which the constructor sets
        case ast.Attribute(value=owner, attr=name):
            method = engine.method_of(owner)
            for store in engine.index.stores.get(name, ()):
                setter = engine.method_storing(store)
                if method is None or setter is None or setter is method:
                    continue
                is_first = getattr(setter.node, "name", "") == "__init__"
                binding = store.binding
                parents = setter.unit.parents
                if (
                    is_first
                    and setter.scope.parent is method.scope.parent
                    and parents.get(parents.get(store.target)) is setter.node  # type: ignore[arg-type]
                    and binding.source is not None
                    and not binding.steps
                    and is_optimizer(facts, binding.source)
                ):
                    return ast.unparse(target)
    return None
