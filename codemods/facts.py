"""What rules ask about a project: which expressions are legacy objects, and every use of one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from codemods.evidence import Evidence
from codemods.flow.constraints import Constraints, Import
from codemods.flow.modules import Project, Unit
from codemods.flow.objects import Class, Container, External, Function, Object, Partial, Place, Thing
from codemods.flow.scopes import Scope
from codemods.legacy import FlaxOptim
from codemods.reflection import reflections
from codemods.removed import removed_uses
from codemods.uses import Use, Uses


class Facts:
    """Everything that the analysis of a project found out. `named_classes` are the legacy classes that it names in quotes."""

    def __init__(self, units: Iterable[Unit], named_classes: Iterable[str] = ()) -> None:
        self.named_classes = frozenset(named_classes)
        self.legacy = FlaxOptim()
        self.flow = Constraints(library=self.legacy)
        self.project = Project(units)
        self.flow.read(self.project)
        self.flow.solve()
        Evidence(self).seed()

    # What is where

    def objects(self, node: ast.expr) -> Iterable[Object]:
        place = self.flow.places.get(node)
        return () if place is None else self.flow.solver.at(place)

    def things(self, node: ast.expr, *kinds: str) -> list[Thing]:
        return [item for item in self.objects(node) if isinstance(item, Thing) and (not kinds or item.kind in kinds)]

    def externals(self, node: ast.expr) -> list[str]:
        return [item.name for item in self.objects(node) if isinstance(item, External)]

    def full_name(self, node: ast.expr) -> str:
        """The full name of what an expression says, if imports tell: `jax.numpy.sqrt` for `jnp.sqrt`. Empty otherwise."""
        found = self.externals(node)
        if len(found) == 1:
            return found[0]
        owner = self.full_name(node.value) if isinstance(node, ast.Attribute) and not found else ""
        return f"{owner}.{node.attr}" if owner and isinstance(node, ast.Attribute) else ""

    def target(self, optimizer: Thing) -> Iterable[Object]:
        """What is known of the parameters an optimizer was created for."""
        return self.flow.solver.at(("target", optimizer))

    def scope(self, node: ast.expr) -> Scope:
        return self.flow.reading.scopes[node]

    def imported(self, unit: Unit) -> list[Import]:
        return self._imports[unit]

    @cached_property
    def _imports(self) -> dict[Unit, list[Import]]:
        found: dict[Unit, list[Import]] = {unit: [] for unit in self.project.units}
        for item in self.flow.reading.imports:
            found[item.unit].append(item)
        return found

    def is_imported(self, scope: Scope | None, name: str) -> bool:
        """Whether a name that is bound in a scope comes there from an import, perhaps one of a star."""
        return not self._imported_names[scope].isdisjoint((name, "*"))

    @cached_property
    def _imported_names(self) -> dict[Scope | None, set[str]]:
        found: dict[Scope | None, set[str]] = defaultdict(set)
        for item in self.flow.reading.imports:
            found[item.scope].add(item.name)
        return found

    def derives_from(self, cls: Class, *names: str) -> bool:
        """Whether a class has one of these external classes among its ancestors."""
        return any(isinstance(item, External) and item.name in names for item in self.flow.ancestry(cls))

    def within(self, place: Place, depth: int = 4) -> list[Thing]:
        """The things at a place and in the containers there."""
        found: dict[Thing, None] = {}
        for item in map(_unwrapped, self.flow.solver.at(place)):
            if isinstance(item, Thing):
                found[item] = None
            elif isinstance(item, Container) and depth:
                found.update(dict.fromkeys(self.within(("elements", item), depth - 1)))
            elif isinstance(item, Function) and depth:
                for argument in item.node.args.args:
                    found.update(dict.fromkeys(self.within(("variable", item.scope, argument.arg), 0)))
                found.update(dict.fromkeys(self.within(("return", item.node), depth - 1)))
        return list(found)

    @cached_property
    def uses(self) -> list[Use]:
        """Every legacy construct of the project, in order of files and lines."""
        finder = Uses(self)
        return [use for unit in self.project.units for use in self._sorted(unit, finder.in_unit(unit))]

    @cached_property
    def groups(self) -> dict[Thing, Thing]:
        """A representative of its group for each thing. Things that are linked, or meet at a use, migrate together."""
        return unify([*(use.things for use in self.uses), *self.legacy.links])

    def _sorted(self, unit: Unit, uses: list[Use]) -> list[Use]:
        reflected = (use for node in unit.nodes for use in reflections(self, unit, node))
        found = [*uses, *reflected, *removed_uses(self, unit)]
        return sorted(found, key=lambda use: (unit.span(use.node)[:2], unit.span(use.node)[2:]))


def _unwrapped(item: Object) -> Object:
    """The function behind partial applications; anything else itself."""
    while isinstance(item, Partial):
        item = item.function
    return item


def unify(things: Iterable[Iterable[Thing]]) -> dict[Thing, Thing]:
    """Union-find: for each thing the representative of its group, given the sets that belong together."""
    parent: dict[Thing, Thing] = {}

    def find(item: Thing) -> Thing:
        parent.setdefault(item, item)
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for together in things:
        members = list(together)
        for member in members:
            parent[find(member)] = find(members[0])
    return {item: find(item) for item in tuple(parent)}
