"""The source texts of an optimizer, old and new, in a form that can be evaluated by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from flax import traverse_util

from codemods.model import EmittedOptimizer
from optim2optax.parity.optimizer.sampling import (
    KNOWN_MODULES,
    Exchange,
    Sampler,
    names_in,
)


@dataclass(frozen=True)
class Counterpart(EmittedOptimizer):
    """An optimizer as the new tree has it.

    `legacy_supports` are the functions and classes that the old expression reaches. `known` names
    those of `supports` that are as `rewrite` emits them, `changed` those that differ in the new
    tree from what `rewrite` makes of the old one. `remarks` say what is not compared. If there is a
    `reason`, nothing can be.
    """

    legacy_supports: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()
    reason: str = ""

    @property
    def has_other_schedule(self) -> bool:
        """Whether the new tree does not have the schedule that the old steps follow, as it was."""
        if not self.schedule:
            return False
        is_changed = not self.changed.isdisjoint(names_in(self.schedule))
        return is_changed or self.schedule not in self.optax_expression


SCHEDULE = "SCHEDULE"
TRAVERSAL = traverse_util.ModelParamTraversal
"""The class of the arguments of a MultiOptimizer, the old one and one that keeps its interface."""


@dataclass(frozen=True)
class Sample:
    """Two expressions with placeholders, and values for these.

    `values` are by the names of the placeholders, `named` are the source texts of the values, by
    those that they replace. The functions and classes that the expressions need are in
    `legacy_supports` and `supports`. `schedule` is that of the old steps, where the new tree has
    another.
    """

    legacy: str
    optax: str
    values: Mapping[str, Any]
    named: Mapping[str, str]
    legacy_supports: tuple[str, ...]
    supports: tuple[str, ...]
    schedule: str = ""


def sampled_texts(emitted: EmittedOptimizer) -> Sample:
    """The texts, with placeholders in place of everything that only the user's program knows.

    The same source text gets the same placeholder on both sides; a schedule is called SCHEDULE.
    """
    helpers = [*names_defined(supports_of(emitted)), SCHEDULE, TRAVERSAL.__name__]
    expression = emitted.optax_expression
    is_of_its_own = isinstance(emitted, Counterpart) and emitted.has_other_schedule
    if emitted.schedule and not is_of_its_own:
        schedule = ast.unparse(ast.parse(emitted.schedule))
        exchange = Exchange({schedule: ast.Name(SCHEDULE, ast.Load())})
        expression = exchange.in_text(expression)
    legacy = emitted.legacy_expression
    sampler = Sampler(frozenset((*KNOWN_MODULES, *helpers)), legacy)
    old = ast.unparse(sampler.visit(ast.parse(legacy, mode="eval").body))
    # The new expression has the placeholders of the old one.
    exchanged = Exchange(sampler.parts).in_text
    new = exchanged(expression)
    # The helpers that `rewrite` emits have no names of the program.
    legacy_supports: tuple[str, ...] = ()
    supports = emitted.supports
    rates = exchanged(emitted.schedule) if is_of_its_own else ""
    if isinstance(emitted, Counterpart):
        sources = [*map(exchanged, emitted.legacy_supports)]
        legacy_supports = _reached(f"({old}, {rates or None})", sources)
        supports = _reached(new, [*map(exchanged, emitted.supports)])
    named = sampler.named
    return Sample(old, new, sampler.values, named, legacy_supports, supports, rates)


def _reached(text: str, sources: Sequence[str]) -> tuple[str, ...]:
    """The functions and classes that an expression reaches.

    In the sources, as in the result, each of them stands after those that it needs.
    """
    wanted = {*names_in(text)}
    found: list[str] = []
    # A source may need those before it, so the last one is looked at first.
    for source in reversed(sources):
        if wanted.intersection(names_defined([source])):
            found.insert(0, source)
            wanted |= {*names_in(source, "exec")}
    return tuple(found)


def names_defined(sources: Iterable[str]) -> list[str]:
    """The names of the functions and classes that are at the top level of some sources."""
    statements = chain.from_iterable(ast.parse(source).body for source in sources)
    return [
        node.name
        for node in statements
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]


def syntax_trees(emitted: EmittedOptimizer) -> list[ast.AST]:
    """The syntax trees of an optimizer's source texts."""
    old = ast.parse(emitted.legacy_expression, mode="eval")
    new = ast.parse(emitted.optax_expression, mode="eval")
    return [old, new, *map(ast.parse, supports_of(emitted))]


def supports_of(emitted: EmittedOptimizer) -> tuple[str, ...]:
    """The functions and classes that an optimizer needs, those of the old side first."""
    if isinstance(emitted, Counterpart):
        return (*emitted.legacy_supports, *emitted.supports)
    return emitted.supports
