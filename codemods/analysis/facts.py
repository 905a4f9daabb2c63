"""The questions of rules about a project: which expressions are legacy objects, and their uses."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar, cast

from codemods.analysis.constructs import Uses
from codemods.analysis.evidence import Seeding
from codemods.analysis.queries import Queries
from codemods.analysis.reflection import paths_in_texts, reflections
from codemods.analysis.removed_names import removed_uses
from codemods.analysis.uses import Use
from codemods.inference.binding import values_of
from codemods.inference.objects import LegacyObject
from codemods.sources.modules import Unit, file_of
from codemods.sources.relevance import Graph

Found = TypeVar("Found")


class Facts(Queries):
    """All results of the analysis of a project.

    Args:
      units: the files that are analysed.
      named_classes: the legacy classes that the project names in quotes.
      others: the texts of files of the project that are not analysed.
      graphs: which files import which, and which are imported by which, if that is known.
      around: files that are read where a question leads there, and are not asked about.
      aside: those of the others of which an internal error came.
      paths: the paths of all files, also of those that no optimizer can get to.
    """

    def __init__(
        self,
        units: Iterable[Unit],
        named_classes: Iterable[str] = (),
        others: Mapping[str, str] = MappingProxyType({}),
        graphs: tuple[Graph, Graph] | None = None,
        around: Iterable[Unit] = (),
        aside: Collection[str] = (),
        paths: Collection[str] = (),
    ) -> None:
        super().__init__(units, named_classes, others, graphs, around)
        self._aside = aside
        self.paths = paths
        Seeding(self).seed()
        self._found: dict[Callable[[Facts], object], object] = {}

    def of(self, finding: Callable[[Facts], Found]) -> Found:
        """What a class or a function finds by the facts alone, once for all plans."""
        if finding not in self._found:
            self._found[finding] = finding(self)
        return cast(Found, self._found[finding])

    @cached_property
    def uses(self) -> list[Use]:
        """Every legacy construct of the project, in order of files and lines."""
        finder = Uses(self)
        return [
            use
            for unit in self.project.units
            for use in self._sorted(unit, finder.in_unit(unit))
        ]

    @cached_property
    def groups(self) -> dict[LegacyObject, LegacyObject]:
        """By legacy object a representative of its group.

        Objects that are linked, or meet at a use, migrate together.
        """
        return unify([*(use.objects for use in self.uses), *self.legacy.links])

    @cached_property
    def members(self) -> dict[LegacyObject, list[LegacyObject]]:
        """The objects of each group, by its representative."""
        found: dict[LegacyObject, list[LegacyObject]] = defaultdict(list)
        for obj, group in self.groups.items():
            found[group].append(obj)
        return found

    @cached_property
    def _beyond(self) -> dict[LegacyObject, str]:
        """By group the file set aside to which one of it gets."""
        found = _beyond(self, self._aside)
        return {self.groups.get(obj, obj): file for obj, file in found.items()}

    def gets_beyond(self, objects: Iterable[LegacyObject]) -> str | None:
        """A file set aside to which some objects may get, or others of their groups."""
        groups = (self.groups.get(obj, obj) for obj in objects)
        return next((self._beyond[one] for one in groups if one in self._beyond), None)

    def of_unknown_origin(self, unit: Unit) -> list[LegacyObject]:
        """The definitions and optimizers of a program whose allocation site is not known."""
        program = self.together(unit)
        return [
            obj
            for obj in self.groups
            if obj.evidence != "proven" and obj.unit.path in program
            if obj.kind == "definition"
            or (obj.kind == "optimizer" and not self.legacy.definitions(obj))
        ]

    def _sorted(self, unit: Unit, uses: list[Use]) -> list[Use]:
        found = [*uses]
        for node in unit.nodes:
            found += reflections(self, unit, node)
        found += removed_uses(self, unit)
        found += paths_in_texts(self, unit, found)
        return sorted(found, key=lambda use: use.span)


def unify(
    objects: Iterable[Iterable[LegacyObject]],
) -> dict[LegacyObject, LegacyObject]:
    """For each object the representative of its group, given the sets that belong together."""
    parent: dict[LegacyObject, LegacyObject] = {}

    def find(item: LegacyObject) -> LegacyObject:
        parent.setdefault(item, item)
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for together in objects:
        members = list(together)
        for member in members:
            parent[find(member)] = find(members[0])
    return {item: find(item) for item in tuple(parent)}


def _beyond(facts: Facts, aside: Collection[str]) -> dict[LegacyObject, str]:
    """The objects that get to files set aside, and to which."""
    found: dict[LegacyObject, str] = {}
    if not aside:
        return found
    for _, call in facts.flow.reading.calls:
        # the files that are not analysed, of which a call may be of a function
        files = map(file_of, facts.flow.origin_names(call.func))
        for file in {file for file in files if file in aside}:
            # what the call is given, and what it gives
            for node in (call, *values_of(call)):
                inner = node.value if isinstance(node, ast.Starred) else node
                carried = facts.flow.carried(facts.flow.places.read(inner))
                found |= dict.fromkeys(carried, str(file))
    # what the variables and functions of a file that it imports have, take and return
    for file in sorted(aside):
        for unit in facts.project.units:
            scope = facts.flow.modules[unit]
            is_imported = file in facts.importers_of(unit)
            for name in sorted(scope.names) if is_imported else ():
                if name in facts.others[file]:
                    within = facts.within(("variable", scope, name))
                    found |= dict.fromkeys(within, file)
    return found
