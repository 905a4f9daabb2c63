"""Fields beside an optimizer that count its steps a second time, as `step` does in `TrainState(step, optimizer, …)`."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Origins, Path
from codemods.flow.binding import arguments_of, taking
from codemods.flow.holding import unwrapped
from codemods.flow.objects import Class, External, Instance, Method
from codemods.idioms import Unproven
from codemods.idioms.copies import Copies, filled_in
from codemods.sources.modules import Unit

DEEPEST = 3
"""How many functions deep an optimizer may be made."""


class Counters:
    """Proves by induction that a field is always the count of the optimizer in another field: at every place that sets one."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins
        self._known: dict[tuple[Class, str, str], int | Unproven] = {}

    def ahead(self, cls: Class, counter: str, field: str) -> int:
        """By how much a field is larger than the count of the optimizer in another, in every object of a class.

        Raises:
          Unproven: if some place may set one of them without the other.
        """
        key = (cls, counter, field)
        if key not in self._known:
            try:
                self._known[key] = self._prove(*key)
            except Unproven as why:
                self._known[key] = why
        found = self._known[key]
        if isinstance(found, Unproven):
            raise found
        return found

    def _prove(self, cls: Class, counter: str, field: str) -> int:
        starts: set[int] = set()

        def doubt(unit: Unit, node: ast.expr) -> Unproven:
            where = unit.place(node.lineno)
            return Unproven(
                f"`{counter}` of `{cls.node.name}` does not always count the steps of its optimizer ({where})"
            )

        for unit, node in Copies(self.origins).of_class(cls, (counter, field)):
            raise doubt(unit, node)
        for unit, call in self.facts.flow.reading.calls:
            if cls in map(unwrapped, self.facts.objects(call.func)):
                start = self._start(cls, call, counter, field)
                if start is None:
                    raise doubt(unit, call)
                starts.add(start)
            elif self._replaces(call, cls) and not self._keeps_pace(call, counter, field):
                raise doubt(unit, call)
        if len(starts) != 1:
            raise Unproven(
                f"`{counter}` of `{cls.node.name}` does not always begin at the same number"
            )
        return starts.pop()

    # At the beginning

    def _start(self, cls: Class, call: ast.Call, counter: str, field: str) -> int | None:
        """At what a new object begins to count, if its optimizer is new, too."""
        given = (
            arguments_of(taking(**dict.fromkeys(self.facts.flow.fields_in_order(cls))), call) or {}
        )
        match given.get(counter):
            case ast.Constant(value=int(start)) if field in given and self._is_new(
                given[field], DEEPEST
            ):
                return start
        return None

    def _is_new(self, node: ast.expr, depth: int) -> bool:
        """Whether an expression is an optimizer that has taken no step."""
        match node:
            case ast.Name():
                assigned = self.origins.values_of(node)
                return bool(assigned) and all(
                    value is not None and self._is_new(value, depth) for value in assigned
                )
            case ast.Call():
                if any(thing.node is node for thing in self.facts.things(node, "optimizer")):
                    return True
                made = self.facts.functions(node.func)
                return bool(depth and made) and all(
                    self._is_new(value, depth - 1)
                    for function in made
                    for value in self.origins.returned(function)
                )
        return False

    # At every change

    def _replaces(self, call: ast.Call, cls: Class) -> bool:
        """Whether a call makes another object by changing some fields of one."""
        for item in map(unwrapped, self.facts.objects(call.func)):
            match item:
                case Method(
                    owner=Instance(cls=other), name="replace" | "_replace", function=None
                ) if other is cls:
                    return True
                case External(name="dataclasses.replace"):
                    base = call.args[0] if call.args else None
                    return base is None or self.facts.may_be_one(base, cls)
        return False

    def _keeps_pace(self, call: ast.Call, counter: str, field: str) -> bool:
        """Whether a call that changes fields changes neither of the two, or lets both go one step."""
        given = {word.arg: word.value for word in call.keywords}
        filled = {word.arg for item in self.facts.objects(call.func) for word in filled_in(item)}
        if None in given or not filled.isdisjoint((None, counter, field)):
            return False
        if counter not in given and field not in given:
            return True
        base = (
            call.args[0]
            if call.args
            else call.func.value
            if isinstance(call.func, ast.Attribute)
            else None
        )
        path = self.origins.path(base) if base is not None else None
        if path is None or field not in given:
            return False
        stepped = self._steps(given[field], Path(path.root, (*path.attributes, field)), call)
        count = Path(path.root, (*path.attributes, counter))
        return stepped is not None and stepped == (
            self._counts(given[counter], count, call) if counter in given else 0
        )

    def _steps(self, node: ast.expr, optimizer: Path, call: ast.Call) -> int | None:
        """How many steps an optimizer has taken beyond the one at a path; None if that is not plain to see."""
        match self.origins.expanded(node):
            case ast.Call(func=ast.Attribute(attr="apply_gradient", value=owner)):
                return 1 if self._is_at(owner, optimizer, call) else None
            case ast.Call(func=ast.Attribute(attr="replace", value=owner), keywords=words):
                plain = all(word.arg == "target" for word in words)
                return 0 if plain and self._is_at(owner, optimizer, call) else None
        return None

    def _counts(self, node: ast.expr, counter: Path, call: ast.Call) -> int | None:
        """By how much an expression is larger than the number at a path."""
        match self.origins.expanded(node):
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=int(more))):
                count = self._counts(left, counter, call)
                return None if count is None else count + more
            case expression if self._is_at(expression, counter, call):
                return 0
        return None

    def _is_at(self, node: ast.expr, path: Path, call: ast.Call) -> bool:
        if self.origins.path(node) != path:
            return False
        return all(self.facts.dataflow.stays([one], one, call) for one in self.origins.chain(node))
