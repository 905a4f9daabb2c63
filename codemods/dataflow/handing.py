"""What code out of view can change: the objects that it is handed, under whatever name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from codemods.dataflow.control_flow import FunctionNode
from codemods.dataflow.effects import Cell, Field, Variable
from codemods.dataflow.program import Program
from codemods.flow.binding import Bound, bind_values, signature_of, values_of
from codemods.flow.objects import (
    Container,
    Instance,
    Method,
    Namespace,
    Object,
    Opaque,
    Partial,
)
from codemods.flow.scopes import Scope
from codemods.sources.modules import Unit

SETTING_UP = ("__init__", "__post_init__", "setup")
"""Methods that set the attributes of a new object."""

Names = dict[Variable, set[Variable]]


class Handing:
    """Follows objects, and of unknown ones the names that they have."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def may_change(
        self, cells: Collection[Cell], handed: Collection[Object | Cell]
    ) -> bool:
        """Whether the fields among some cells may be of what is handed to code out of view.

        Objects of unknown origin are known by the variables and fields that they are read from.
        """
        if not handed:
            return False
        known = {item for item in handed if not isinstance(item, Variable | Field)}
        reached = self.within(known)
        names = self._other_names(cell for cell in cells if isinstance(cell, Variable))
        are_unknown = False
        for cell in cells:
            if isinstance(cell, Field) and not cell.owners.isdisjoint(reached):
                return True
            are_unknown = are_unknown or (isinstance(cell, Field) and not cell.owners)
        return are_unknown and any(
            one in names or one in cells for one in handed if one not in known
        )

    @cached_property
    def set_somewhere(self) -> frozenset[object]:
        """The names of attributes, and the keys, that are set anywhere but for a new object."""
        found: set[object] = set()
        for unit in self.program.flow.project.units:
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

    def _other_names(self, variables: Iterable[Variable]) -> set[Variable]:
        """All variables that may have the object of one of some: where it is from, and gets to."""
        given, taken = self._given
        return _reached(_reached(variables, taken), given)

    @cached_property
    def _given(self) -> tuple[Names, Names]:
        """The variables that plain assignments and calls give each, and the other way round."""
        given: Names = defaultdict(set)
        taken: Names = defaultdict(set)
        for source, target in self._passed():
            given[source].add(target)
            taken[target].add(source)
        return given, taken

    def _passed(self) -> Iterator[tuple[Variable, Variable]]:
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
                    match place:
                        case ("variable", Scope() as scope, str(other)):
                            yield Variable(scope, other), Variable(found.scope, name)
        for unit in flow.project.units:
            for node in unit.nodes:
                match node:
                    # cfg = config
                    case ast.Assign(
                        targets=[ast.Name(id=name)], value=ast.Name() as value
                    ):
                        scope = self.program.scope(unit, value)
                        source, target = scope.binding(value.id), scope.binding(name)
                        if source is not None and target is not None:
                            yield Variable(source, value.id), Variable(target, name)


def _reached(
    starts: Iterable[Variable], ways: Mapping[Variable, set[Variable]]
) -> set[Variable]:
    """Some variables, and all to which ways lead from them."""
    pending = list(starts)
    found = set[Variable]()
    while pending:
        variable = pending.pop()
        if variable not in found:
            found.add(variable)
            pending += ways.get(variable, ())
    return found


def _is_new(node: ast.Attribute, unit: Unit) -> bool:
    """Whether this is `self.rate = rate` of an object that is being made."""
    if not isinstance(node.value, ast.Name) or node.value.id != "self":
        return False
    around = (one for one in unit.ancestors(node) if isinstance(one, ast.FunctionDef))
    function = next(around, None)
    return function is not None and function.name in SETTING_UP
