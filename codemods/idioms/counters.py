"""Fields that count an optimizer's steps a second time: `step` in `State(step, optimizer, …)`."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Origins, Path
from codemods.idioms import Unproven
from codemods.idioms.unfollowed import UnfollowedChanges, filled_in
from codemods.inference.binding import arguments_of, taking
from codemods.inference.holders import unwrapped
from codemods.inference.objects import Class, External, Instance, Method
from codemods.sources.modules import Unit

DEEPEST = 3
"""How many functions deep an optimizer may be made."""


class Counters:
    """Proves, by induction, that a field is always the count of the optimizer in another field."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins
        self._known: dict[tuple[Class, str, str], int | Unproven] = {}

    def ahead(self, cls: Class, counter: str, field: str) -> int:
        """By how much a field is always larger than the count of the optimizer in another."""
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
        what = f"`{counter}` of `{cls.node.name}`"

        def doubt(unit: Unit, node: ast.expr) -> Unproven:
            where = unit.location(node.lineno)
            return Unproven(
                "{} does not always count the steps of its optimizer ({})", what, where
            )

        unfollowed = UnfollowedChanges(self.origins)
        for unit, node in unfollowed.of_class(cls, (counter, field)):
            raise doubt(unit, node)
        for unit, call in self.facts.flow.reading.calls:
            # State(step=0, optimizer=…)
            if cls in map(unwrapped, self.facts.objects(call.func)):
                start = self._start(cls, call, counter, field)
                if start is None:
                    raise doubt(unit, call)
                starts.add(start)
                continue
            if not self._replaces(call, cls):
                continue
            # state.replace(step=state.step + 1, optimizer=…)
            if not self._keeps_pace(call, counter, field):
                raise doubt(unit, call)
        if len(starts) != 1:
            raise Unproven(f"{what} does not always begin at the same number")
        return starts.pop()

    # At the beginning

    def _start(
        self,
        cls: Class,
        call: ast.Call,
        counter: str,
        field: str,
    ) -> int | None:
        """At what a new object begins to count, if its optimizer is new, too."""
        fields = self.facts.flow.fields_in_order(cls)
        given = arguments_of(taking(**dict.fromkeys(fields)), call) or {}
        match given.get(counter):
            case ast.Constant(value=int(start)) if field in given:
                return start if self._is_new(given[field], DEEPEST) else None
        return None

    def _is_new(self, node: ast.expr, depth: int) -> bool:
        """Whether an expression is an optimizer that has taken no step."""
        match node:
            # optimizer = definition.create(params), and then State(0, optimizer)
            case ast.Name():
                assigned = self.origins.values_of(node)
                for value in assigned:
                    if value is None or not self._is_new(value, depth):
                        return False
                return bool(assigned)
            case ast.Call():
                optimizers = self.facts.legacy_objects(node, "optimizer")
                # definition.create(params)
                if any(obj.node is node for obj in optimizers):
                    return True
                # create_optimizer(params)
                return bool(depth) and self._makes_new(node, depth - 1)
        return False

    def _makes_new(self, call: ast.Call, depth: int) -> bool:
        """Whether a call is of functions that return a new optimizer."""
        made = self.facts.functions(call.func)
        for function in made:
            for value in self.facts.flow.engine.values_returned(function.node):
                if not self._is_new(value, depth):
                    return False
        return bool(made)

    # At every change

    def _replaces(self, call: ast.Call, cls: Class) -> bool:
        """Whether a call makes another object by changing some fields of one."""
        for item in map(unwrapped, self.facts.objects(call.func)):
            match item:
                # state.replace(…)
                case Method(
                    owner=Instance(cls=other),
                    name="replace" | "_replace",
                    function=None,
                ) if other is cls:
                    return True
                # dataclasses.replace(state, …)
                case External(name="dataclasses.replace"):
                    base = call.args[0] if call.args else None
                    return base is None or self.facts.may_be_one(base, cls)
        return False

    def _keeps_pace(self, call: ast.Call, counter: str, field: str) -> bool:
        """Whether a call that changes fields changes neither of the two, or both by one step."""
        given = {word.arg: word.value for word in call.keywords}
        filled: set[str | None] = set()
        # partial(state.replace, step=0)()
        for item in self.facts.objects(call.func):
            filled.update(word.arg for word in filled_in(item))
        # state.replace(**changes)
        if None in given or not filled.isdisjoint((None, counter, field)):
            return False
        if counter not in given and field not in given:
            return True
        base = _changed_object(call)
        path = self.origins.path(base) if base is not None else None
        if path is None or field not in given:
            return False
        optimizer = Path(path.root, (*path.attributes, field))
        count = Path(path.root, (*path.attributes, counter))
        stepped = self._steps(given[field], optimizer, call)
        if stepped is None:
            return False
        # state.replace(optimizer=state.optimizer.replace(target=params)) leaves the counter
        if counter not in given:
            return stepped == 0
        return stepped == self._counts(given[counter], count, call)

    def _steps(self, node: ast.expr, optimizer: Path, call: ast.Call) -> int | None:
        """How many steps an optimizer is ahead of the one at a path; None if that is unknown."""
        match self.origins.expanded(node):
            # state.optimizer.apply_gradient(grads)
            case ast.Call(func=ast.Attribute(attr="apply_gradient", value=owner)):
                return 1 if self._is_at(owner, optimizer, call) else None
            # state.optimizer.replace(target=params)
            case ast.Call(
                func=ast.Attribute(attr="replace", value=owner), keywords=words
            ):
                if any(word.arg != "target" for word in words):
                    return None
                return 0 if self._is_at(owner, optimizer, call) else None
        return None

    def _counts(self, node: ast.expr, counter: Path, call: ast.Call) -> int | None:
        """By how much an expression is larger than the number at a path."""
        match self.origins.expanded(node):
            # state.step + 1
            case ast.BinOp(
                left=left, op=ast.Add(), right=ast.Constant(value=int(more))
            ):
                count = self._counts(left, counter, call)
                return None if count is None else count + more
            # state.step
            case expression if self._is_at(expression, counter, call):
                return 0
        return None

    def _is_at(self, node: ast.expr, path: Path, call: ast.Call) -> bool:
        """Whether an expression is the object at a path, and still so at a call."""
        is_there = self.origins.path(node) == path
        return is_there and self.facts.dataflow.is_kept(node, call)


def _changed_object(call: ast.Call) -> ast.expr | None:
    """The object in `dataclasses.replace(state, …)` or `state.replace(…)`."""
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else None
