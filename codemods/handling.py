"""How a program handles an optimizer as a whole: as a tree, by comparing or by pickling it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from codemods.dataflow.binding import values_of
from codemods.flow.modules import Unit
from codemods.flow.objects import Container, Derived, Instance, Place, Thing
from codemods.leaves import in_any_order, reduces_in_any_order
from codemods.optimizers.views import COUNTLESS
from codemods.origins import LOOPS as REPEATING
from codemods.origins import function_of, statement_of
from codemods.uses import Use
from codemods.vocabulary import (
    CONTROL,
    GLOBAL_NORM,
    MAP_SLICES,
    OF_TREES,
    PICKLE,
    RAVEL_TREE,
    REDUCE_TREES,
)

if TYPE_CHECKING:
    from codemods.facts import Facts
    from codemods.rules.context import Context

REDUCING = REDUCE_TREES | RAVEL_TREE | GLOBAL_NORM
LOOPS = CONTROL | MAP_SLICES
"""What calls functions and gives the result of one, or of each in turn."""

PROCESSES = "concurrent.futures.ProcessPoolExecutor"

PICKLED, COMPARED, COUNTED, BY_PATH, TYPED = "pickled", "compared", "counted", "by path", "typed"


class Handling:
    """Finds what a train state cannot be used for."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.facts = context.facts

    def uses(self) -> list[Use]:
        """The places where a train state would not do what an optimizer did."""
        if not any(thing.kind == "optimizer" for thing in self.facts.groups):
            return []
        called = (found for unit, call in self.facts.flow.reading.calls for found in self._of_call(unit, call))
        typed = (
            Use("whole", TYPED, unit, call, things)
            for unit, call in self.facts.flow.reading.calls
            if "builtins.type" in self.facts.externals(call.func) and (things := self._typed(unit, call))
        )
        compared = (
            Use("whole", COMPARED, unit, node, things)
            for unit in self.facts.project.units
            for node in unit.nodes
            if isinstance(node, ast.Compare) and (things := self._compared(node))
        )
        return [*called, *typed, *compared]

    @cached_property
    def joined(self) -> frozenset[Thing]:
        """The optimizers that meet others in one tree function, branch or loop, where all that is no array has to be the same."""
        found: set[Thing] = set()
        for _, call in self.facts.flow.reading.calls:
            met: tuple[Thing, ...] = ()
            if tree_function(self.facts, call) in ("map", "multimap"):
                several = len(call.args) > 2 or any(isinstance(one, ast.Starred) for one in call.args)
                met = self.held(call) if several else ()
            elif not LOOPS.isdisjoint(self.facts.externals(call.func)):
                met = tuple(dict.fromkeys(self._within(self.facts.flow.places.get(call))))
            if len(met) > 1 or any(map(self._is_made_often, met)):
                found.update(met)
        return frozenset(found)

    def _is_made_often(self, optimizer: Thing) -> bool:
        """Whether what makes an optimizer is in a function that is called at several places, or in a loop."""
        function = function_of(optimizer.unit, optimizer.node)
        sites = [] if function is None else self.context.origins.calls(function)
        around = (outer for site, _ in sites for outer in site.unit.ancestors(site.node))
        return len(sites) > 1 or any(isinstance(outer, REPEATING) for outer in around)

    # Calls

    def _of_call(self, unit: Unit, call: ast.Call) -> Iterator[Use]:
        tree = tree_function(self.facts, call)
        names = set(names_of(self.facts, call.func))
        if names & REDUCING:
            kind, is_bad = COUNTED, not (names & REDUCE_TREES and reduces_in_any_order(call, self.facts))
        elif "with_path" in tree:
            kind, is_bad = BY_PATH, True
        elif tree in ("leaves", "flatten"):
            kind, is_bad = COUNTED, not in_any_order(call, self.facts, counts=not self._is_countless(call))
        else:
            kind, is_bad = PICKLED, any(name.startswith(PICKLE) for name in names) or self._by_pickler(call)
        if is_bad and (things := self.held(call, may_be=kind == PICKLED)):
            yield Use("whole", kind, unit, call, things)

    def _by_pickler(self, call: ast.Call) -> bool:
        """Whether this is a method of something that pickles, such as a queue between processes."""
        if not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
            return False
        variable = self.context.origins.variable(call.func.value)
        stores = [] if variable is None else self.context.origins.stores(variable)
        return any(
            any(name.startswith((*PICKLE, PROCESSES)) for name in names_of(self.facts, maker.func))
            for store in stores
            if isinstance(store, ast.Name) and variable is not None
            for maker in _makers(statement_of(variable.unit, store))
        )

    def _is_countless(self, call: ast.Call) -> bool:
        """Whether the train states of all optimizers that a call is given have as many leaves as the optimizers had."""
        things = self.held(call)
        made = [found for thing in things for found in self.facts.legacy.definitions(thing) or [thing]]
        is_plain = COUNTLESS.issuperset(thing.name for thing in made) and self.context.injected.isdisjoint(made)
        return is_plain and self.context.schedules.of(things) is None

    # What holds optimizers

    def held(self, call: ast.Call, may_be: bool = False) -> tuple[Thing, ...]:
        """The optimizers among the arguments of a call, and in what they hold; with `may_be`, those that only may be there."""
        found: dict[Thing, None] = {}
        for argument in values_of(call):
            node = argument.value if isinstance(argument, ast.Starred) else argument
            found.update(dict.fromkeys(self._within(self.facts.flow.places.get(node), may_be)))
        return tuple(found)

    def _within(self, place: Place, may_be: bool = False) -> Iterator[Thing]:
        """The optimizers at a place, in containers and in fields of instances there."""
        contents = self.facts.flow.derivation.contents
        for item in self.facts.flow.solver.at(place):
            if isinstance(item, Derived):
                yield from [item.source] if may_be and item.source.kind == "optimizer" else []
            elif isinstance(item, Thing | Container | Instance):
                for token in contents.within(item):
                    if isinstance(token, Thing) and token.kind == "optimizer":
                        yield token

    def _compared(self, node: ast.Compare) -> tuple[Thing, ...]:
        """The optimizers that a comparison other than by `is` is about, if there may be one on both sides."""
        first, *others = [node.left, *node.comparators]
        if not any(isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for operator in node.ops):
            return ()
        things = self.facts.things(first, "optimizer")
        met = [thing for other in others for thing in self._within(self.facts.flow.places.get(other))]
        return (*things, *met) if things and met else ()

    def _typed(self, unit: Unit, call: ast.Call) -> tuple[Thing, ...]:
        """The optimizers and definitions whose type is asked for, other than to make or to tell optimizers."""
        things = self.facts.things(call.args[0], "optimizer", "definition") if len(call.args) == 1 else []
        parent = unit.parents.get(call)
        makes = isinstance(parent, ast.Call) and parent.func is call
        tells = isinstance(parent, ast.Compare | ast.Call) and all(thing.kind == "optimizer" for thing in things)
        return () if makes or tells else tuple(things)


def names_of(facts: Facts, node: ast.expr) -> Iterator[str]:
    """The full names that an expression may stand for."""
    yield from facts.externals(node)
    if name := facts.full_name(node):
        yield name


def tree_function(facts: Facts, call: ast.Call) -> str:
    """`map` for `jax.tree_util.tree_map` and its like; empty for all else."""
    for name in names_of(facts, call.func):
        tree = next((tree for tree in OF_TREES if name.startswith(tree)), "")
        if tree and "." not in (last := name.removeprefix(tree)):
            return last
    return ""


def _makers(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls that may make what a statement sets."""
    values: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        values = [statement.value]
    elif isinstance(statement, ast.With):
        values = [item.context_expr for item in statement.items]
    yield from (value for value in values if isinstance(value, ast.Call))
