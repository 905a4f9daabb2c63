"""Legacy states that are changed in place.

In a state that is created only to be read, such a change would be lost.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain

from codemods.analysis.queries import Queries
from codemods.inference.binding import values_of
from codemods.inference.containers import CHANGING
from codemods.inference.objects import (
    Class,
    Container,
    Function,
    LegacyObject,
    Method,
    Partial,
    Place,
)
from codemods.inference.out_of_view import COMPUTING
from codemods.inference.reading import Binding
from codemods.sources.modules import Unit
from codemods.vocabulary import words

READING = frozenset(("get", "items", "values", "keys", "__getitem__", "unfreeze"))
"""Methods that return a part of a dict, or the dict itself."""

SHALLOW = frozenset(("builtins.dict", "builtins.list", "builtins.tuple", "copy.copy"))
"""Functions that return a container of the same elements."""

SETTING = frozenset(
    words("setattr __setattr__ delattr __delattr__ setitem delitem shuffle")
)
"""The last words of functions that change their first argument."""


class Snapshots:
    """Follows states, and what is read from them, to where they may be changed.

    Args:
      facts: where states are.
      units: the files that read some.
    """

    def __init__(self, facts: Queries, units: Iterable[Unit]) -> None:
        self.facts = facts
        self.units = facts.in_programs_of(units)

    @cached_property
    def changed(self) -> frozenset[LegacyObject]:
        """The states that are changed in place, or escape to code that may do so."""
        return frozenset(
            state
            for unit in self.units
            for node in unit.nodes
            for value in self._touched(node)
            for state in self._behind(value)
        )

    def _touched(self, node: ast.AST) -> Iterable[ast.expr]:
        """The expressions whose objects a node may change."""
        match node:
            # state.param_states["dense"] = …
            case (
                ast.Subscript(value=value, ctx=ast.Store() | ast.Del())
                | ast.Attribute(value=value, ctx=ast.Store() | ast.Del())
            ):
                return (value,)
            # state.param_states.update(…)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if (
                name in CHANGING
            ):
                return (owner,)
            # library.change(state)
            case ast.Call() if self._may_change(node):
                return values_of(node)
        return ()

    def _may_change(self, call: ast.Call) -> bool:
        kinds = (Function, Method, Partial, Class)
        if any(isinstance(item, kinds) for item in self.facts.objects(call.func)):
            return False  # what that does with its parameters is seen there
        names = self.facts.flow.origin_names(call.func)
        effects = {self.facts.flow.library.effect(name) for name in names}
        return "unknown" in effects or any(
            name.rpartition(".")[2] in SETTING for name in names
        )

    def _behind(self, node: ast.expr) -> Iterator[LegacyObject]:
        """The states that an expression is a part of, copies excluded."""
        pending: list[tuple[Place, bool]] = [(node, False)]
        seen = {*pending}
        while pending:
            place, is_inner = pending.pop()
            states: list[LegacyObject] = []
            if isinstance(place, ast.expr):
                states = self.facts.legacy_objects(place, "state")
            if states:
                yield from states
                continue
            new = [one for one in self._sources(place, is_inner) if one not in seen]
            seen.update(new)
            pending += new

    def _sources(self, place: Place, is_inner: bool) -> Iterator[tuple[Place, bool]]:
        """The places from which an object comes, each with whether it is an element of that."""
        match place:
            # for states in state.param_states.values()
            case (
                ast.Attribute(value=value)
                | ast.Subscript(value=value)
                | ast.Starred(value=value)
                | ast.For(iter=value)
                | ast.AsyncFor(iter=value)
                | ast.comprehension(iter=value)
                | ("bound", Binding(source=ast.expr() as value), _)
            ):
                yield value, True
            # state.param_states.items()
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if (
                name in READING
            ):
                yield value, True
            # dict(state.param_states): only the elements are the same
            case ast.Call(func=function, args=[first, *_]) if SHALLOW & {
                *self.facts.externals(function)
            }:
                if is_inner:
                    yield first, True
                return
            # jax.tree_map(f, state.param_states)
            case ast.Call(func=function) if any(
                # which share only arrays with the arguments
                name.partition(".")[0] in COMPUTING
                for name in self.facts.externals(function)
            ):
                return
            case ("element" | "elements", Container(node=ast.Call() as made), *_):
                yield made, True
        flow = self.facts.flow
        known = flow.places.get(place) if isinstance(place, ast.expr) else None
        if known is not None and known != place:
            yield known, is_inner
        for whole in self._unpacked.get(place, ()):
            yield whole, True
        for source in flow.sources(place):
            yield source, is_inner

    @cached_property
    def _unpacked(self) -> dict[Place, list[ast.expr]]:
        """By variable the expressions that it is unpacked from."""
        found: dict[Place, list[ast.expr]] = defaultdict(list)
        nodes = chain.from_iterable(unit.nodes for unit in self.units)
        for node in nodes:
            match node:
                # for name, leaf in states.items()
                case (
                    ast.For(target=target, iter=value)
                    | ast.comprehension(target=target, iter=value)
                ):
                    targets = [target]
                # first, second = states
                case ast.Assign(targets=targets, value=value):
                    pass
                case _:
                    continue
            scope = self.facts.scope(value)
            for target in targets:
                if not isinstance(target, ast.Tuple | ast.List):
                    continue
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        place = ("variable", scope.binding(name.id), name.id)
                        found[place].append(value)
        return found
