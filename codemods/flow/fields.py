"""The fields of instances. Classes that inherit from each other share them, so each has one place.

A base may set a field of `self` and read what a subclass has set; through a base that two classes
have in common, what one of them sets reaches the other. All classes that inheritance links are one
hierarchy, and its fields stand at one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from codemods.flow.objects import Class, Opaque, Place
from codemods.flow.solver import Solver

Owner = Class | Opaque


@dataclass
class Fields:
    """The part of the analysis that knows of fields."""

    solver: Solver = field(default_factory=Solver)
    united: list[tuple[Class, Class]] = field(default_factory=list)
    """The hierarchies that became part of others, each with the other."""
    _hierarchies: dict[Owner, Owner] = field(default_factory=dict)
    """For a class, one that is nearer to that at which the fields of its hierarchy stand."""
    _fields: dict[Owner, dict[str, None]] = field(default_factory=dict)
    """The names of the fields that anything has asked for."""
    _annotated: dict[Owner, dict[str, None]] = field(default_factory=dict)
    """The names of the fields that classes annotate, whether anything asks for them or not."""
    _whole: set[Owner] = field(default_factory=set)
    """The hierarchies of which any field has been asked for, see `any_field`."""

    def hierarchy(self, owner: Owner) -> Owner:
        """The class at which the fields of an instance stand."""
        found = owner
        while (nearer := self._hierarchies.get(found, found)) is not found:
            # the next time, the way is half as long
            further = self._hierarchies.get(nearer, nearer)
            self._hierarchies[found] = further
            found = further
        return found

    def unite(self, cls: Class, base: Class) -> None:
        """Let the hierarchy of a class be part of that of its base."""
        old = self.hierarchy(cls)
        new = self.hierarchy(base)
        # class Trainer(Base, Logger), where `Logger` derives from `Base`
        if old is new:
            return
        self._hierarchies[old] = new
        asked = self._fields.pop(old, {})
        annotated = self._annotated.pop(old, {})
        for name in asked:
            self.field(new, name)
        self._annotated.setdefault(new, {}).update(annotated)
        # constraints that have been made before name the old places
        for name in {**asked, **annotated}:
            self._join(("field", old, name), ("field", new, name))
        if old in self._whole:
            self._whole.remove(old)
            self.any_field(new)
            for word in ("any field", "some field", "own elements"):
                self._join((word, old), (word, new))
        assert isinstance(old, Class)
        assert isinstance(new, Class)
        self.united.append((old, new))

    def _join(self, one: Place, other: Place) -> None:
        """Let two places have the same objects."""
        self.solver.connect(one, other)
        self.solver.connect(other, one)

    def field(self, owner: Owner, name: str) -> Place:
        """The place of an instance's field."""
        top = self.hierarchy(owner)
        names = self._fields.setdefault(top, {})
        if name not in names:
            names[name] = None
            if top in self._whole:
                self._join_whole(top, name)
        return ("field", top, name)

    def annotated_field(self, cls: Class, name: str) -> Place:
        """The place of a field that a class annotates, which asks for nothing."""
        top = self.hierarchy(cls)
        self._annotated.setdefault(top, {})[name] = None
        return ("field", top, name)

    def any_field(self, owner: Owner) -> tuple[Place, Place]:
        """Where to read any field of an instance, and where to write one of unknown name.

        A read of any field finds what is written so, a read of a field by its name does not.
        """
        top = self.hierarchy(owner)
        read = ("any field", top)
        written = ("some field", top)
        # getattr(self, name)
        if top not in self._whole:
            self._whole.add(top)
            for name in tuple(self._fields.get(top, ())):
                self._join_whole(top, name)
            for place in (written, ("own elements", top)):
                self.solver.connect(place, read)
        return read, written

    def elements_of_instances(self, owner: Owner) -> Place:
        """The place of the elements that instances of a class have as containers."""
        self.any_field(owner)
        return ("own elements", self.hierarchy(owner))

    def _join_whole(self, top: Owner, name: str) -> None:
        self.solver.connect(("field", top, name), ("any field", top))

    def is_asked_by_any_name(self, cls: Class) -> bool:
        """Whether some field of a class is read or written by a name that is computed."""
        return self.hierarchy(cls) in self._whole

    def field_places(self, owner: Owner) -> Sequence[Place]:
        """The places of all fields of an instance that anything has asked for, inherited or not."""
        top = self.hierarchy(owner)
        names = self._fields.get(top, ())
        named = (("field", top, name) for name in names)
        return (*named, ("some field", top), ("own elements", top))
