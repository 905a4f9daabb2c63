"""Which attributes an object has that is not legacy."""

from __future__ import annotations

from functools import cached_property

from codemods.analysis.legacy import FOREIGN
from codemods.analysis.queries import Queries
from codemods.inference.objects import (
    Class,
    Container,
    External,
    Instance,
    Module,
    Object,
    Opaque,
    Result,
)
from codemods.vocabulary import OTHER_OPTIMIZERS

FOREIGN_OPTIMIZERS = (*FOREIGN, *OTHER_OPTIMIZERS)


class Members:
    """The members of the project's classes, also those that are assigned later."""

    def __init__(self, facts: Queries) -> None:
        self.facts = facts
        self._of: dict[Class, set[str]] = {}

    @cached_property
    def _set_outside(self) -> set[str]:
        """The attributes that are assigned to more than `self`: they count for any class."""
        engine = self.facts.flow.engine
        stores = engine.index.stores.items()
        return {name for name, of in stores if None in map(engine.method_storing, of)}

    def offers(self, item: Object, name: str) -> bool:
        """Whether an object that is not legacy is known to have this attribute."""
        match item:
            case Instance(cls=cls):
                members = self._members(cls)
                has = name in members or (name == "replace" and "step" in members)
                return has and not self.facts.legacy_bases(cls)
            case Result() | External():
                return foreign(item)
        return isinstance(item, Module | Class)

    def may_offer(self, item: Object, name: str) -> bool:
        """Whether an object is known to have this attribute, or has members out of view."""
        match item:
            case Instance(cls=cls):
                is_open = any(self.facts.outer_bases(cls))
                has_any = is_open or "__getattr__" in self._members(cls)
                return has_any or self.offers(item, name)
            # a dict whose keys are attributes, or a named tuple
            case Container():
                return bool(self.facts.flow.solver.at(("element", item, name)))
            case Result():
                return item.is_instance or foreign(item)
        return True

    def _members(self, cls: Class) -> set[str]:
        if cls not in self._of:
            members = {*self._set_outside}
            for base in self.facts.flow.ancestry(cls):
                if isinstance(base, Class):
                    fields = self.facts.flow.engine.fields_named(base)
                    members |= base.scope.names.union(fields)
            self._of[cls] = members
        return self._of[cls]


def foreign(item: Object) -> bool:
    """Whether an object comes from a package with optimizers of its own."""
    return isinstance(item, Result | External) and item.name.startswith(
        FOREIGN_OPTIMIZERS
    )


def tells(item: Object) -> bool:
    """Whether an object at a place shows what is there."""
    match item:
        case Result():
            return item.is_instance or foreign(item)
        case Opaque():
            return False
        case _:
            return True
