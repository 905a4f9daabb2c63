"""What is read by a name that no code has: by a key of `globals()`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from codemods.analysis.legacy import LegacyName, legacy_name
from codemods.analysis.queries import Queries
from codemods.inference.objects import Container, External, Place
from codemods.sources.modules import Unit


class Lookups:
    """The legacy names that are read by a key."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts

    def by_keys(self, unit: Unit, name: str, legacy: LegacyName) -> Iterator[Place]:
        """Where a variable of a module goes that holds something legacy and may be read by a key.

        A key that may be any counts for a class that is called by another name than its own.
        """
        is_called = isinstance(legacy, str) and legacy in self._called
        for key, result in self.facts.flow.looked_up.get(unit, ()):
            if key == name or (key is None and is_called and self._has(result, legacy)):
                yield result

    @cached_property
    def by_key(self) -> set[LegacyName]:
        """The classes that are read by a key."""
        return {
            legacy
            for unit in self.facts.flow.looked_up
            for item in self.facts.imported(unit)
            if (legacy := legacy_name(item.target)) is not None
            and any(self.by_keys(unit, item.name, legacy))
        }

    def may_be_any(self, unit: Unit) -> bool:
        """Whether any variable of a module may be read by a key."""
        return any(key is None for key, _ in self.facts.flow.looked_up.get(unit, ()))

    def _has(self, place: Place, legacy: LegacyName) -> bool:
        """Whether a class is at a place, or in a container there: `globals().items()`."""
        pending, seen = [place], {place}
        for inner in pending:  # grows while it is read
            for item in self.facts.flow.solver.at(inner):
                if isinstance(item, External) and legacy_name(item.name) == legacy:
                    return True
                elements = ("elements", item)
                if isinstance(item, Container) and elements not in seen:
                    seen.add(elements)
                    pending.append(elements)
        return False

    @cached_property
    def _called(self) -> set[LegacyName | None]:
        """The classes that are called by another name than that of an import."""
        return {
            legacy_name(name)
            for _, call in self.facts.flow.reading.calls
            if not self.facts.names_legacy(call.func)
            for name in self.facts.externals(call.func)
        }
