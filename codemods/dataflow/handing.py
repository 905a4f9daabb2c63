"""What code out of view can change: the objects that it is handed, under whatever name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from codemods.dataflow.control_flow import FunctionNode
from codemods.dataflow.effects import Cell, Field, Variable
from codemods.dataflow.program import Program
from codemods.inference.binding import Bound, bind_values, signature_of, values_of
from codemods.inference.objects import (
    Container,
    Instance,
    Method,
    Namespace,
    Object,
    Opaque,
    Partial,
    Place,
)
from codemods.inference.scopes import Scope
from codemods.sources.modules import Unit

SETTING_UP = ("__init__", "__post_init__", "setup")
"""Methods that set the attributes of a new object."""

Names = dict[Cell, set[Cell]]


class Handing:
    """Follows objects, and of unknown ones the names that they have."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def may_change(
        self,
        fields: Collection[Field],
        through: Collection[Cell],
        handed: Collection[Object | Cell],
    ) -> bool:
        """Whether fields are of what is handed to code out of view.

        Args:
          fields: the attributes and elements.
          through: what unknown owners of these are read from.
          handed: objects, and what unknown ones are read from.
        """
        if not fields or not handed:
            return False
        names: set[Cell] = set()
        known: list[Object] = []
        for item in handed:
            if isinstance(item, Variable | Field):
                names.add(item)
            else:
                known.append(item)
        reached = self.within(known)
        if any(not cell.owners.isdisjoint(reached) for cell in fields):
            return True
        return not names.isdisjoint(self._other_names(through))

    @cached_property
    def set_somewhere(self) -> frozenset[object]:
        """The names of attributes, and the keys, that are set anywhere but for a new object."""
        found: set[object] = set()
        for unit in self.program.flow.project.read:
            for node in unit.nodes:
                match node:
                    case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                        if not _is_new(node, unit):
                            found.add(name)
                    case ast.Subscript(
                        slice=ast.Constant(value=key), ctx=ast.Store() | ast.Del()
                    ):
                        found.add(key)
                    case ast.Call(
                        func=ast.Name(id="setattr"),
                        args=[_, ast.Constant(value=key), _],
                    ):
                        found.add(key)
        return frozenset(found)

    def within(self, items: Iterable[Object]) -> set[Object]:
        """Objects, and all that can be reached from them."""
        solver = self.program.flow.solver
        pending = list(items)
        found = set[Object]()
        while pending:
            item = pending.pop()
            if item in found:
                continue
            found.add(item)
            match item:
                case Container():
                    pending += solver.at(("elements", item))
                case Instance(cls=owner) | Namespace(owner=owner) | (Opaque() as owner):
                    for place in self.program.flow.field_places(owner):
                        pending += solver.at(place)
                case Method(owner=owner, function=function):
                    pending.append(owner)
                    if function is not None:
                        pending.append(function)
                case Partial(call=call, function=function):
                    pending.append(function)
                    for node in values_of(call)[1:]:
                        pending += self.program.objects(node)
        return found

    # Names

    def _other_names(self, cells: Iterable[Cell]) -> set[Cell]:
        """What else may have the object of a variable or field: where it is from, and gets to."""
        given, taken = self._given
        return _reached(_reached(cells, taken), given)

    @cached_property
    def _given(self) -> tuple[Names, Names]:
        """What plain assignments and calls give the object of each, and the other way round."""
        given: Names = defaultdict(set)
        taken: Names = defaultdict(set)
        for source, target in (*self._passed(), *self._assigned()):
            given[source].add(target)
            taken[target].add(source)
        return given, taken

    def _passed(self) -> Iterator[tuple[Cell, Cell]]:
        """The variables and fields that calls give for parameters."""
        flow = self.program.flow
        for function, sites in flow.entered.items():
            found = self.program.functions.get(function)
            if found is None or not isinstance(function, FunctionNode):
                continue
            for site, offset in sites:
                signature = signature_of(function.args, offset)
                bound = bind_values(signature, site.positional, site.keywords)
                given = bound.complete if isinstance(bound, Bound) else {}
                for name, place in given.items():
                    source = self._cell(place)
                    if source is not None:
                        yield source, Variable(found.scope, name)

    def _assigned(self) -> Iterator[tuple[Cell, Cell]]:
        """The variables and fields that plain assignments set to others: `self.config = config`."""
        for unit in self.program.flow.project.read:
            for node in unit.nodes:
                if isinstance(node, ast.Assign):
                    source = self._cell(node.value)
                    targets = map(self._cell, node.targets)
                    for target in targets if source is not None else ():
                        if target is not None and source is not None:
                            yield source, target

    def _cell(self, place: Place) -> Cell | None:
        """The variable or field at a place."""
        match place:
            case ("variable", Scope() as scope, str(name)):
                return Variable(scope, name)
            case ast.Name(id=name):
                scope = self.program.scope(self.program.unit_of(place), place)
                bound = scope.binding(name)
                return None if bound is None else Variable(bound, name)
            case (
                ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name))
            ):
                return Field(name)
        return None


def _reached(starts: Iterable[Cell], ways: Mapping[Cell, set[Cell]]) -> set[Cell]:
    """Some variables and fields, and all to which ways lead from them."""
    pending = list(starts)
    found = set[Cell]()
    while pending:
        cell = pending.pop()
        if cell not in found:
            found.add(cell)
            pending += ways.get(cell, ())
    return found


def _is_new(node: ast.Attribute, unit: Unit) -> bool:
    """Whether this is `self.rate = rate` of an object that is being made."""
    if not isinstance(node.value, ast.Name) or node.value.id != "self":
        return False
    around = (one for one in unit.ancestors(node) if isinstance(one, ast.FunctionDef))
    function = next(around, None)
    return function is not None and function.name in SETTING_UP
