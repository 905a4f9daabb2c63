"""What may be at a place as rules know it: whatever the calls that lead there."""

from __future__ import annotations

import ast
from itertools import chain

from codemods.inference.engine import Inference
from codemods.inference.objects import (
    Class,
    Container,
    Instance,
    LegacyObject,
    Object,
    Opaque,
    Place,
    plain,
)
from codemods.inference.scopes import Scope

Found = tuple[Object, ...]


class Answers:
    """What may be at a place, whatever the calls that lead there."""

    def __init__(self, engine: Inference) -> None:
        self._engine = engine
        self._known: dict[Place, tuple[Found, Found, int]] = {}
        """What is at a place for rules and for inference, and the version at which it was."""
        self._forms: dict[Container, dict[Object, None]] = {}
        """The containers as inference knows them, by how rules do."""

    @property
    def version(self) -> int:
        return self._engine.solver.version

    def at(self, place: Place) -> tuple[Object, ...]:
        if place is None:
            return ()
        known = self._known.get(place)
        if known is not None and known[2] == self.version:
            return known[0]
        answers = [self._engine.solver.at(asked) for asked in self.asked(place)]
        is_one = len(answers) == 1
        found = answers[0] if is_one else tuple(chain.from_iterable(answers))
        # what became known since may be elsewhere
        if known is not None and known[1] == found:
            plainly, found, _ = known
        else:
            plainly = self._plainly(found)
        self._known[place] = plainly, found, self.version
        return plainly

    def _plainly(self, found: Found) -> Found:
        """Objects as rules know them."""
        for item in found:
            box = plain(item)
            if isinstance(box, Container) and item is not box:
                self._forms.setdefault(box, {})[item] = None
        return tuple(dict.fromkeys(map(plain, found)))  # type: ignore[arg-type]

    def legacy_objects(self) -> list[LegacyObject]:
        """All objects that are known so far, in the order in which they became known."""
        return [
            item
            for item in self._engine.solver.everything()
            if isinstance(item, LegacyObject)
        ]

    def has(self, place: Place, item: Object) -> bool:
        return item in self.at(place)

    def add(self, place: Place, *items: Object) -> bool:
        """Let objects be at a place, and wherever what is there gets to."""
        asked, *_ = self.asked(place)
        match asked:
            case ("variable", Scope() as scope, name):
                self._engine.solver.add(("seeded", scope, name), *items)
            case ("expression", ast.Call() | ast.Subscript() as node, None):
                self._engine.solver.add(("seeded expression", node), *items)
            case ("return", node):
                self._engine.solver.add(("seeded return", node), *items)
            case ("field", Opaque(), _):
                return self._engine.solver.add(asked, *items)
            case ("field", Instance(cls=cls), name):
                return self._engine.solver.add(("seeded field", cls, name), *items)
        return self._engine.solver.add(asked, *items)

    def forms(self, box: Container) -> list[Object]:
        """A container as inference knows it, in whatever calls it is made."""
        return [box, *self._forms.get(box, ())]

    def asked(self, place: Place) -> list[Place]:
        match place:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [("itself", self._engine.functions[place])]
            case ast.expr():
                return [("expression", place, None)]
            case ast.AST():
                return []
            case ("field", Class() as cls, name):
                return [("field", Instance(cls), name)]
            case ("element", Container() as box, key):
                return [("item in", one, key, True) for one in self.forms(box)]
            case ("elements", Container() as box):
                return [("item in", one, None) for one in self.forms(box)]
            case ("self", Class() as cls):
                return [("itself", Instance(cls))]
        return [place]
