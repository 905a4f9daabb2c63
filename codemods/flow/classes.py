"""Classes of the project: what they inherit, and the fields of their instances."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from codemods.flow.objects import Class, Function, Instance, Object, Opaque, Place, Record
from codemods.flow.solver import Solver


@dataclass
class Classes:
    """The part of the analysis that knows of classes."""

    solver: Solver = field(default_factory=Solver)
    _bases: dict[Class, dict[Object, None]] = field(default_factory=dict)
    _heirs: dict[Class, dict[Class, None]] = field(default_factory=dict)
    """The subclasses of each class."""
    _ancestry: dict[Class, list[Object]] = field(default_factory=dict)
    _fields: dict[Class | Opaque, dict[str, None]] = field(default_factory=dict)
    """The names of the fields that anything has asked for."""
    _classes: dict[ast.AST, Class] = field(default_factory=dict)
    _reactions: dict[Class, list[Callable[[], None]]] = field(default_factory=dict)
    """What to do again when a base of a class becomes known."""
    _whole: set[Class | Opaque] = field(default_factory=set)
    """The classes of which any field has been asked for, see `any_field`."""
    _members: set[str] = field(default_factory=set)
    """The names that any class binds."""

    def declare_class(self, cls: Class, bases: list[Place]) -> None:
        self._classes[cls.node] = cls
        self.solver.add(("self", cls), Instance(cls))
        self._bases[cls] = {}
        self._fields[cls] = {}
        self._members.update(cls.scope.names)
        for place in bases:
            self.solver.watch(place, lambda base: self._inherit(cls, base))

    def class_of(self, node: ast.ClassDef) -> Class:
        return self._classes[node]

    def ancestry(self, cls: Class) -> list[Object]:
        """The class, its bases and theirs, nearest first; some are external."""
        if cls not in self._ancestry:
            self._ancestry[cls] = [cls, *order_of(cls, self._bases)]
        return self._ancestry[cls]

    def defining(self, cls: Class, name: str) -> Iterator[Class]:
        """The class and those of its bases that bind a name, nearest first."""
        if name not in self._members:
            return  # saves a look at each base, as most names are bound by no class
        for item in self.ancestry(cls):
            if isinstance(item, Class) and name in item.scope.names:
                yield item

    def by_ancestry(self, cls: Class, action: Callable[[], None]) -> None:
        """Act now, and again whenever a base of the class becomes known."""
        self._reactions.setdefault(cls, []).append(action)
        action()

    def _inherit(self, cls: Class, base: Object) -> None:
        if base in self._bases[cls] or base is cls:
            return
        self._bases[cls][base] = None
        if isinstance(base, Class):
            self._heirs.setdefault(base, {})[cls] = None
        heirs = self._with_heirs(cls)
        for heir in heirs:
            self._ancestry.pop(heir, None)
        # In the order of the reactions, which may add to them.
        for heir in [one for one in self._reactions if one in heirs]:
            for action in tuple(self._reactions[heir]):
                action()
        if isinstance(base, Class):
            # What a method of the base does to `self`, it does to an instance of the subclass.
            self.solver.connect(("self", cls), ("self", base))
            for name in tuple(self._fields[cls]):
                self._join_field(cls, base, name)
            if cls in self._whole:
                self._join_whole_base(cls, base)

    def _with_heirs(self, cls: Class) -> dict[Class, None]:
        """The class, and those that inherit from it, directly or not."""
        found = {cls: None}
        pending = [cls]
        while pending:
            for heir in self._heirs.get(pending.pop(), ()):
                if heir not in found:
                    found[heir] = None
                    pending.append(heir)
        return found

    def field(self, owner: Class | Opaque, name: str) -> Place:
        """The place of an instance's field; a class shares its fields with its bases."""
        pending: list[Class | Opaque] = [owner]
        while pending:
            one = pending.pop()
            names = self._fields.setdefault(one, {})
            if name in names:
                continue
            names[name] = None
            if one in self._whole:
                self._join_whole(one, name)
            # A base may set the field of `self`, and read what a subclass has set.
            if isinstance(one, Class):
                for base in self._bases[one]:
                    if isinstance(base, Class):
                        self._connect_fields(one, base, name)
                        pending.append(base)
        return ("field", owner, name)

    def any_field(self, owner: Class | Opaque) -> tuple[Place, Place]:
        """Where to read any field of an instance, and where to write one of unknown name.

        A read of any field finds what is written so, a read of a field by its name does not.
        """
        if owner not in self._whole:
            self._whole.add(owner)
            for name in tuple(self._fields.get(owner, ())):
                self._join_whole(owner, name)
            for place in (("some field", owner), ("held", owner)):
                self.solver.connect(place, ("any field", owner))
            bases = self._bases[owner] if isinstance(owner, Class) else ()
            for base in tuple(bases):
                self._join_whole_base(owner, base)
        return ("any field", owner), ("some field", owner)

    def _join_whole(self, owner: Class | Opaque, name: str) -> None:
        self.solver.connect(("field", owner, name), ("any field", owner))

    def _join_whole_base(self, owner: Class | Opaque, base: Object) -> None:
        if isinstance(base, Class):
            read, written = self.any_field(base)
            self.solver.connect(read, ("any field", owner))
            self.solver.connect(("some field", owner), written)
            self.solver.connect(("held", owner), ("held", base))

    def is_asked_by_any_name(self, cls: Class) -> bool:
        """Whether some field of a class is read or written by a name that is computed."""
        return cls in self._whole

    def field_places(self, owner: Class | Opaque) -> list[Place]:
        """The places of all fields of an instance that anything has asked for, inherited or not.

        A field that it shares with a base has the same objects at both places, and is listed once.
        """
        own = self._fields.get(owner, {})
        ancestry = self.ancestry(owner) if isinstance(owner, Class) else [owner]
        owners = [item for item in ancestry if isinstance(item, Class | Opaque)]
        found: list[Place] = [("field", owner, name) for name in own]
        for one in owners:
            names = self._fields.get(one, ())
            found += (("field", one, name) for name in names if name not in own)
        for word in ("some field", "held"):
            found += ((word, one) for one in owners)
        return found

    def _join_field(self, cls: Class, base: Class, name: str) -> None:
        self.field(base, name)
        self._connect_fields(cls, base, name)

    def _connect_fields(self, cls: Class, base: Class, name: str) -> None:
        lower = ("field", cls, name)
        upper = ("field", base, name)
        self.solver.connect(lower, upper)
        self.solver.connect(upper, lower)

    def fields_in_order(self, cls: Class) -> list[str]:
        """The annotated fields of a dataclass or NamedTuple, inherited ones first."""
        names: dict[str, None] = {}
        for ancestor in reversed(self.ancestry(cls)):
            if isinstance(ancestor, Record):
                names.update(dict.fromkeys(ancestor.fields))
            if isinstance(ancestor, Class):
                for statement in ancestor.node.body:
                    match statement:
                        # rate: float = 0.1
                        case ast.AnnAssign(target=ast.Name(id=name)):
                            names[name] = None
        return list(names)

    @staticmethod
    def decorators(function: Function) -> set[str]:
        """The last words of a function's decorators: `cached_property`, `setter`."""
        if isinstance(function.node, ast.Lambda):
            return set()
        found: set[str] = set()
        for node in function.node.decorator_list:
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Name):
                found.add(node.id)
        return found


def order_of(cls: Class, bases: dict[Class, dict[Object, None]]) -> list[Object]:
    """The ancestors of a class, breadth first, each once."""
    found: dict[Object, None] = {}
    order: list[Object] = [cls]
    for item in order:
        if not isinstance(item, Class):
            continue
        for base in bases.get(item, ()):
            if base not in found and base is not cls:
                found[base] = None
                order.append(base)
    return list(found)
