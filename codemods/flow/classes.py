"""Classes of the project: what they inherit, and the fields of their instances."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from codemods.flow.objects import Class, Function, Instance, Object, Opaque, Place, Record
from codemods.flow.solver import Solver


@dataclass
class Classes:
    """The part of the analysis that knows of classes."""

    solver: Solver = field(default_factory=Solver)
    _bases: dict[Class, dict[Object, None]] = field(default_factory=dict)
    _fields: dict[Class, dict[str, None]] = field(default_factory=dict)
    _classes: dict[ast.AST, Class] = field(default_factory=dict)
    _reactions: dict[Class, list[Callable[[], None]]] = field(default_factory=dict)

    def declare_class(self, cls: Class, bases: list[Place]) -> None:
        self._classes[cls.node] = cls
        self.solver.add(("self", cls), Instance(cls))
        self._bases[cls] = {}
        self._fields[cls] = {}
        for place in bases:
            self.solver.watch(place, lambda base: self._inherit(cls, base))

    def class_of(self, node: ast.ClassDef) -> Class:
        return self._classes[node]

    def ancestry(self, cls: Class) -> list[Object]:
        """The class, its bases and theirs, nearest first: classes of the project and external ones."""
        order: dict[Object, None] = {cls: None}
        for item in order_of(cls, self._bases):
            order[item] = None
        return list(order)

    def by_ancestry(self, cls: Class, action: Callable[[], None]) -> None:
        """Do what depends on the ancestry of a class, now and whenever a base of it becomes known."""
        self._reactions.setdefault(cls, []).append(action)
        action()

    def _inherit(self, cls: Class, base: Object) -> None:
        if base in self._bases[cls] or base is cls:
            return
        self._bases[cls][base] = None
        for heir in tuple(self._reactions):
            if cls in self.ancestry(heir):
                for action in tuple(self._reactions[heir]):
                    action()
        if isinstance(base, Class):
            self.solver.connect(("self", cls), ("self", base))  # what a base does to itself, it does to a subclass
            for name in tuple(self._fields[cls]):
                self._join_field(cls, base, name)

    def field(self, owner: Class | Opaque, name: str) -> Place:
        """The place of an instance's field; a class shares its fields with its bases."""
        if isinstance(owner, Class) and name not in self._fields[owner]:
            self._fields[owner][name] = None
            for base in tuple(self._bases[owner]):
                if isinstance(base, Class):
                    self._join_field(owner, base, name)
        return ("field", owner, name)

    def _join_field(self, cls: Class, base: Class, name: str) -> None:
        upper = self.field(base, name)
        self.solver.connect(("field", cls, name), upper)
        self.solver.connect(upper, ("field", cls, name))

    def fields_in_order(self, cls: Class) -> list[str]:
        """The annotated fields of a dataclass or NamedTuple, inherited ones first."""
        names: dict[str, None] = {}
        for ancestor in reversed(self.ancestry(cls)):
            if isinstance(ancestor, Record):
                names.update(dict.fromkeys(ancestor.fields))
            if isinstance(ancestor, Class):
                for statement in ancestor.node.body:
                    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                        names[statement.target.id] = None
        return list(names)

    @staticmethod
    def decorators(function: Function) -> set[str]:
        """The last words of a function's decorators."""
        if isinstance(function.node, ast.Lambda):
            return set()
        return {
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in function.node.decorator_list
            if isinstance(node, ast.Attribute | ast.Name)
        }


def order_of(cls: Class, bases: dict[Class, dict[Object, None]]) -> list[Object]:
    """The ancestors of a class, breadth first, each once."""
    found: dict[Object, None] = {}
    pending: list[Object] = [cls]
    while pending:
        item = pending.pop(0)
        for base in bases.get(item, ()) if isinstance(item, Class) else ():
            if base not in found and base is not cls:
                found[base] = None
                pending.append(base)
    return list(found)
