"""Classes of the project, and what they inherit."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from codemods.flow.fields import Fields
from codemods.flow.objects import (
    Class,
    Container,
    Function,
    Instance,
    LegacyObject,
    Method,
    Module,
    Object,
    Place,
    Record,
)

NO_BASE = (Container, Function, Instance, LegacyObject, Method, Module)
"""What is no class: a variable that may be set to anything from outside has these, too."""


@dataclass
class Classes(Fields):
    """The part of the analysis that knows of classes."""

    _bases: dict[Class, dict[Object, None]] = field(default_factory=dict)
    _heirs: dict[Class, dict[Class, None]] = field(default_factory=dict)
    """The subclasses of each class."""
    _ancestry: dict[Class, list[Object]] = field(default_factory=dict)
    _classes: dict[ast.AST, Class] = field(default_factory=dict)
    _reactions: dict[Class, list[Callable[[], None]]] = field(default_factory=dict)
    """What to do again when a base of a class becomes known."""
    _members: set[str] = field(default_factory=set)
    """The names that any class binds."""
    _once_bound: dict[str, list[Callable[[], None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """What to do once some class binds a name."""

    def declare_class(self, cls: Class, bases: list[Place]) -> None:
        self._classes[cls.node] = cls
        self.solver.add(("self", cls), Instance(cls))
        self._bases[cls] = {}
        self._members.update(cls.scope.names)
        awaited = [name for name in self._once_bound if name in cls.scope.names]
        for name in awaited:
            for action in self._once_bound.pop(name):
                action()
        for place in bases:
            self.solver.watch(place, lambda base: self._inherit(cls, base))

    def class_of(self, node: ast.ClassDef) -> Class:
        return self._classes[node]

    def bases(self, cls: Class) -> Iterable[Object]:
        """The bases of a class, in the order in which they became known; some are external."""
        return tuple(self._bases[cls])

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

    def once_bound(self, name: str, action: Callable[[], None]) -> None:
        """Act as soon as any class binds a name."""
        if name in self._members:
            action()
        else:
            self._once_bound[name].append(action)

    def by_ancestry(self, cls: Class, action: Callable[[], None]) -> None:
        """Act now, and again whenever a base of the class becomes known."""
        self._reactions.setdefault(cls, []).append(action)
        action()

    def _inherit(self, cls: Class, base: Object) -> None:
        if base in self._bases[cls] or base is cls or isinstance(base, NO_BASE):
            return
        self._bases[cls][base] = None
        if isinstance(base, Class):
            self._heirs.setdefault(base, {})[cls] = None
        for heir in self._with_heirs(cls):
            self._ancestry.pop(heir, None)
            # bases become known one by one: what depends on them waits for the others
            self.solver.once_settled(heir, partial(self._react, heir))
        if isinstance(base, Class):
            # What a method of the base does to `self`, it does to an instance of the subclass.
            self.solver.connect(("self", cls), ("self", base))
            self.unite(cls, base)

    def _react(self, cls: Class) -> None:
        for action in tuple(self._reactions.get(cls, ())):
            action()

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

    def fields_in_order(self, cls: Class) -> list[str]:
        """The annotated fields of a dataclass or NamedTuple, inherited ones first."""
        names: dict[str, None] = {}
        for ancestor in reversed(self.ancestry(cls)):
            # class State(namedtuple("State", "params step"))
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
            # @functools.cached_property, @optimizer.setter
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            # @property
            elif isinstance(node, ast.Name):
                found.add(node.id)
        return found


def is_generic(node: ast.ClassDef) -> bool:
    """Whether a class can be given types: `class Holder(Generic[T])`, or `class Holder[T]`."""
    has_types = any(isinstance(base, ast.Subscript) for base in node.bases)
    return has_types or bool(getattr(node, "type_params", ()))


def order_of(cls: Class, bases: dict[Class, dict[Object, None]]) -> list[Object]:
    """The ancestors of a class, breadth first, each once."""
    found: dict[Object, None] = {}
    order: list[Object] = [cls]
    # The list grows while it is read.
    for item in order:
        if not isinstance(item, Class):
            continue
        for base in bases.get(item, ()):
            if base not in found and base is not cls:
                found[base] = None
                order.append(base)
    return list(found)
