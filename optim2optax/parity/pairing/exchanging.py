"""An optimizer with the code of the new tree in the place of what `rewrite` emits."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields, replace
from functools import cached_property

from codemods.model import EmittedOptimizer
from optim2optax.parity.optimizer.texts import Counterpart, helper_names
from optim2optax.parity.pairing.definitions import Definitions
from optim2optax.parity.pairing.following import Slice, slice_of


def as_counterpart(emitted: EmittedOptimizer) -> Counterpart:
    """An optimizer as a record that may have more."""
    own = [getattr(emitted, field.name) for field in fields(EmittedOptimizer)]
    return Counterpart(*own)


@dataclass(frozen=True)
class Side:
    """An expression in its file."""

    file: Definitions
    node: ast.expr

    @cached_property
    def slice(self) -> Slice:
        return slice_of(self.file, self.node)


def exchanged(
    emitted: EmittedOptimizer, before: Definitions, expected: Side, actual: Side
) -> EmittedOptimizer:
    """The optimizer with the code of the new tree in the place of what `rewrite` emits.

    It is the optimizer itself where both depend on the same code.
    """
    if expected.slice == actual.slice:
        return emitted
    node = before.place(emitted.legacy_expression, emitted.line)
    legacy = slice_of(before, node, kept=frozenset({"optim"}))
    alone = _without_clips(actual.slice.expression, expected.slice.expression, emitted)
    definitions = dict(actual.slice.definitions)
    wanted = dict(expected.slice.definitions)
    legacy_sources = [source for _, source in legacy.definitions]
    same = {name for name, source in definitions.items() if source == wanted.get(name)}
    # A helper that the new tree has as `rewrite` emits it is known to be harmless.
    known = same.intersection(helper_names(emitted))
    changed = (definitions.keys() & wanted.keys()) - same
    return replace(
        as_counterpart(emitted),
        after=ast.unparse(actual.node),
        legacy_expression=legacy.expression,
        optax_expression=_applied(alone, emitted),
        supports=tuple(definitions.values()),
        legacy_supports=tuple(legacy_sources),
        known=frozenset(known),
        changed=frozenset(changed),
        schedule=_schedule(emitted, expected),
    )


def _schedule(emitted: EmittedOptimizer, expected: Side) -> str:
    """The source text of the schedule, with its names followed."""
    if not emitted.schedule:
        return ""
    wanted = normal(emitted.schedule)
    for node in ast.walk(expected.node):
        if not isinstance(node, ast.expr):
            continue
        # optax.adam(schedule_of(config)), where `schedule_of(config)` is the schedule
        if ast.unparse(node) == wanted:
            return slice_of(expected.file, node).expression
    return wanted


def _without_clips(expression: str, expected: str, emitted: EmittedOptimizer) -> str:
    """The new expression without the links that the old definition does not have.

    `rewrite` puts the clipping of gradients, which an old program does in its step, into the front
    of the chain: `optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))`.
    """
    whole = _links(expected)
    given = _links(expression)
    moved = len(whole) - len(_links(emitted.optax_expression))
    # A new tree that clips otherwise is compared with its clipping.
    if moved <= 0 or whole[:moved] != given[:moved]:
        return expression
    rest = given[moved:]
    if not rest:
        return expression
    if len(rest) == 1:
        return rest[0]
    return f"optax.chain({', '.join(rest)})"


def _applied(expression: str, emitted: EmittedOptimizer) -> str:
    """The new expression with sampled arguments, if it is a function that its program calls."""
    match ast.parse(emitted.optax_expression, mode="eval").body:
        # `make_optimizer(0.1)`, where `make_optimizer` is handed over and called elsewhere
        case ast.Call(func=ast.Name(id=name)) as call if name == emitted.after:
            called = ast.unparse(call.func)
            arguments = emitted.optax_expression[len(called) :]
            return f"({expression}){arguments}"
    return expression


def _links(text: str) -> list[str]:
    """The parts of a chain; anything else is a single part."""
    match ast.parse(text, mode="eval").body:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="optax"), attr="chain"), args=links
        ):
            return [ast.unparse(link) for link in links]
    return [text]


def normal(text: str) -> str:
    """A source text as `ast.unparse` writes it."""
    return ast.unparse(ast.parse(f"({text})", mode="eval"))
