"""Legacy states that something changes in place: of one that is made for a look into it, nobody would see the change."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from codemods.analysis.queries import Queries
from codemods.flow.binding import values_of
from codemods.flow.containers import CHANGING, SHIFTING
from codemods.flow.objects import Class, Container, Function, Method, Partial, Place, Thing
from codemods.flow.out_of_view import COMPUTING

READING = frozenset(("get", "items", "values", "keys", "__getitem__", "unfreeze"))
"""Methods that give a part of a dict, or the dict itself."""

SHALLOW = frozenset(("builtins.dict", "builtins.list", "builtins.tuple", "copy.copy"))
"""What makes a container of the same elements."""

SETTING = frozenset(
    ("setattr", "__setattr__", "delattr", "__delattr__", "setitem", "delitem", "shuffle")
)
"""The last words of what changes the first thing that it is given."""

IN_PLACE = CHANGING | SHIFTING


class Snapshots:
    """Follows states, and what is read of them, to where they may be changed."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts

    @cached_property
    def changed(self) -> frozenset[Thing]:
        """The states that are changed in place, or handed to code that is not in view and may do so."""
        nodes = (node for unit in self.facts.project.units for node in unit.nodes)
        return frozenset(
            state
            for node in nodes
            for value in self._touched(node)
            for state in self._behind(value)
        )

    def _touched(self, node: ast.AST) -> Iterable[ast.expr]:
        """What a piece of code may change."""
        match node:
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                return (value,)
            case ast.Attribute(value=value, ctx=ast.Store() | ast.Del()):
                return (value,)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in IN_PLACE:
                return (owner,)
            case ast.Call() if self._may_change(node):
                return values_of(node)
        return ()

    def _may_change(self, call: ast.Call) -> bool:
        if any(
            isinstance(item, Function | Method | Partial | Class)
            for item in self.facts.objects(call.func)
        ):
            return False  # what that does with its parameters is seen there
        names = self.facts.flow.derivation.roots.names(call.func)
        effects = {self.facts.flow.library.effect(name) for name in names}
        return "unknown" in effects or any(name.rpartition(".")[2] in SETTING for name in names)

    def _behind(self, node: ast.expr) -> Iterator[Thing]:
        """The states of which an expression is a part, and no copy."""
        pending: list[tuple[Place, bool]] = [(node, False)]
        seen = {*pending}
        while pending:
            place, is_inner = pending.pop()
            states = self.facts.things(place, "state") if isinstance(place, ast.expr) else []
            yield from states
            new = (
                [] if states else [one for one in self._sources(place, is_inner) if one not in seen]
            )
            seen.update(new)
            pending += new

    def _sources(self, place: Place, is_inner: bool) -> Iterator[tuple[Place, bool]]:
        """Where something comes from, and whether it is known to be an element of that."""
        match place:
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Starred(value=value):
                yield value, True
            case ast.For(iter=value) | ast.AsyncFor(iter=value) | ast.comprehension(iter=value):
                yield value, True
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in READING:
                yield value, True
            case ast.Call(func=function, args=[first, *_]) if SHALLOW & {
                *self.facts.externals(function)
            }:
                yield from [(first, True)] if is_inner else []
                return
            case ast.Call(func=function) if any(map(_makes_anew, self.facts.externals(function))):
                return
            case ("element" | "elements", Container(node=ast.Call() as made), *_):
                yield made, True
        flow = self.facts.flow
        known = flow.places.get(place) if isinstance(place, ast.expr) else None
        yield from [(known, is_inner)] if known is not None and known != place else []
        yield from ((whole, True) for whole in self._unpacked.get(place, ()))
        for source in (*flow.solver.incoming().get(place, ()), *flow.returned.get(place, ())):
            yield source, is_inner

    @cached_property
    def _unpacked(self) -> dict[Place, list[ast.expr]]:
        """For each variable what it is unpacked from."""
        found: dict[Place, list[ast.expr]] = defaultdict(list)
        for node in (node for unit in self.facts.project.units for node in unit.nodes):
            match node:
                case (
                    ast.For(target=target, iter=value)
                    | ast.comprehension(target=target, iter=value)
                ):
                    targets = [target]
                case ast.Assign(targets=targets, value=value):
                    pass
                case _:
                    continue
            scope = self.facts.flow.reading.scopes.get(value)
            for name in (
                name
                for target in targets
                if isinstance(target, ast.Tuple | ast.List)
                for name in ast.walk(target)
            ):
                if isinstance(name, ast.Name) and scope is not None:
                    found["variable", scope.binding(name.id), name.id].append(value)
        return found


def _makes_anew(function: str) -> bool:
    """Whether a function gives trees that share nothing but arrays with those that it is given."""
    return function.partition(".")[0] in COMPUTING
