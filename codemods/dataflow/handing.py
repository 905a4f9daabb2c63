"""What code out of view can change: the objects that it is handed, under whatever name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import chain

from codemods.dataflow.effects import Cell, Field, Variable
from codemods.dataflow.program import Program
from codemods.inference.binding import values_of
from codemods.inference.objects import (
    Container,
    Instance,
    Method,
    Object,
    Opaque,
    Partial,
    Place,
)
from codemods.inference.reading import AttributeStore, ItemStore
from codemods.inference.scopes import Scope

DISPLAYS = (ast.Tuple, ast.List, ast.Dict)
SETTING_UP = ("__init__", "__post_init__", "setup")
"""Methods that set the attributes of a new object."""


class Handing:
    """Follows objects, and of unknown ones the names that they have."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.flow = program.flow
        self._known: dict[ast.expr, frozenset[Cell]] = {}

    def may_change(
        self,
        fields: Collection[Field],
        through: Collection[ast.expr],
        handed: Collection[ast.AST],
    ) -> bool:
        """Whether fields are of what is handed to code out of view.

        Args:
          fields: the attributes and elements.
          through: the unknown owners of these.
          handed: what is handed to it.
        """
        if not fields or not handed:
            return False
        reached = self.within(chain.from_iterable(map(self.program.states, handed)))
        return any(
            not cell.owners.isdisjoint(reached) for cell in fields
        ) or not self._names_of(handed).isdisjoint(self._names_of(through))

    def may_meet(self, some: Collection[ast.AST], others: Collection[ast.AST]) -> bool:
        """Whether one of some expressions may be the object that one of some others is."""
        own = {*chain.from_iterable(map(self.program.states, some))}
        theirs = chain.from_iterable(map(self.program.states, others))
        return not own.isdisjoint(theirs) or not self._names_of(some).isdisjoint(
            self._names_of(others)
        )

    @cached_property
    def set_somewhere(self) -> frozenset[object]:
        """The names of attributes, and the keys, that are set anywhere but for a new object."""
        found: set[object] = set()
        for store in self._stores:
            match store.target:
                case ast.Attribute(attr=name):
                    # self.rate = rate, of an object that is being made
                    method = self.flow.engine.method_storing(store)
                    if getattr(method and method.node, "name", "") not in SETTING_UP:
                        found.add(name)
                case ast.Subscript(slice=ast.Constant(value=key)):
                    found.add(key)
        for call in self.flow.engine.index.called.get("setattr", ()):
            match call.args:
                case [_, ast.Constant(value=key), _]:
                    found.add(key)
        return frozenset(found)

    @property
    def _stores(self) -> Iterator[AttributeStore | ItemStore]:
        """Where attributes and elements are set."""
        index = self.flow.engine.index
        yield from chain.from_iterable(index.stores.values())
        yield from index.item_stores

    def within(self, items: Iterable[Object]) -> set[Object]:
        """Objects, and all that can be reached from them."""
        pending = list(items)
        found = set[Object]()
        while pending:
            item = pending.pop()
            if item not in found:
                found.add(item)
                pending += self._parts(item)
        return found

    def _parts(self, item: Object) -> Iterator[Object]:
        solver = self.flow.solver
        match item:
            case Container():
                yield from solver.at(("elements", item))
            case Instance(cls=owner) | (Opaque() as owner):
                for place in self.flow.field_places(owner):
                    yield from solver.at(place)
            case Method(owner=owner, function=function):
                yield owner
                if function is not None:
                    yield function
            case Partial(call=call, function=function):
                yield function
                for node in values_of(call)[1:]:
                    yield from self.program.objects(node)

    # Names

    def _names_of(self, nodes: Iterable[ast.AST]) -> set[Cell]:
        """The variables and fields that unknown objects have come from."""
        found: set[Cell] = set()
        pending = [*nodes]
        while pending:
            node = pending.pop()
            # fit({"config": config})
            if isinstance(node, DISPLAYS):
                pending += ast.iter_child_nodes(node)
            elif isinstance(node, ast.expr) and not self.program.states(node):
                found |= self._names(node)
        return found

    def _names(self, node: ast.expr) -> frozenset[Cell]:
        """The variables and fields that an object comes from, by plain assignments and calls."""
        if node not in self._known:
            found: set[Cell] = set()
            seen: set[Place] = set()
            pending: list[Place] = [self.flow.places.get(node)]
            while pending:
                place = pending.pop()
                if place in seen:
                    continue
                seen.add(place)
                pending += self.flow.sources.of(place)
                match place:
                    case ("variable", Scope() as scope, str(name)):
                        found.add(Variable(scope, name))
                    case (
                        ast.Attribute(attr=key)
                        | ast.Subscript(slice=ast.Constant(value=key))
                    ):
                        found.add(Field(key))
                        pending += self._set_to[key]
            self._known[node] = frozenset(found)
        return self._known[node]

    @cached_property
    def _set_to(self) -> defaultdict[object, list[Place]]:
        """What assignments set attributes and elements to, by their names."""
        found: defaultdict[object, list[Place]] = defaultdict(list)
        for store in self._stores:
            source = store.binding.source
            match store.target:
                case (
                    ast.Attribute(attr=key)
                    | ast.Subscript(slice=ast.Constant(value=key))
                ) if source is not None and not store.binding.steps:
                    found[key].append(self.flow.places[source])
        return found
