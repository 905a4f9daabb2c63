"""Which expressions are the number of steps that an optimizer has taken."""

from __future__ import annotations

import ast

from codemods.analysis.origins import Origins, Path
from codemods.analysis.uses import Use, owner_of_state
from codemods.idioms import Unproven
from codemods.idioms.counters import Counters
from codemods.idioms.float_rates import FloatRates
from codemods.idioms.unfollowed import UnfollowedChanges
from codemods.inference.objects import Instance, LegacyObject, Object


class Counts:
    """Compares what a step is given with the optimizer that takes it."""

    def __init__(self, origins: Origins) -> None:
        self.facts = origins.facts
        self.origins = origins
        self.counters = Counters(origins)
        self._copies = UnfollowedChanges(origins)
        self._together: set[LegacyObject | None] = set()
        """Groups of which the step changes by steps alone."""

    def ahead(self, node: ast.expr, step: Use) -> int | None:
        """By how much an expression is ahead of the count before a step; None if it is unknown."""
        match node:
            # step + 1
            case ast.BinOp(
                left=left, op=ast.Add(), right=ast.Constant(value=int(more))
            ):
                count = self.ahead(left, step)
                return None if count is None else count + more
            # step = optimizer.state.step
            case ast.Name():
                value = self.origins.local_value(node)
                return None if value is None else self.ahead(value, step)
            # optimizer.state.step, or state.step
            case ast.Attribute(attr=name, value=state):
                owner = owner_of_state(state) if name == "step" else None
                if owner is None:
                    return self._counter(node, step)
                objects = self.facts.legacy_objects(owner, "optimizer")
                if not objects:
                    return self._counter(node, step)
                # that of another optimizer, or of the same one ahead of an earlier step
                if not self._is_stepped(owner, step):
                    return None
                self._refuse_set_apart(objects)
                return 0
        return None

    def _refuse_set_apart(self, objects: list[LegacyObject]) -> None:
        """Refuse optimizers whose step may change without a step: one is made of other leaves."""
        groups = self.facts.groups
        ours = {groups.get(obj) for obj in objects}
        if ours <= self._together:
            return

        def is_ours(item: Object) -> bool:
            return isinstance(item, LegacyObject) and groups.get(item) in ours

        for unit, node in self._copies.changed(is_ours):
            where = unit.location(node.lineno)
            raise Unproven(
                "the step of the optimizer is made of other leaves at {}", where
            )
        self._together |= ours

    def _is_stepped(self, owner: ast.expr, step: Use) -> bool:
        """Whether an optimizer is, unchanged, the one that takes the step."""
        path = self.origins.path(owner)
        is_its_own = path is not None and path == self.origins.path(step.owner)
        return is_its_own and self._is_kept(owner, step)

    def _is_kept(self, node: ast.expr, step: Use) -> bool:
        """Whether a path, and the one to the optimizer, lead to the same objects until the step."""
        is_kept, call = self.facts.dataflow.is_kept, step.call
        assert call is not None
        return is_kept(node, call) and is_kept(step.owner, call)

    def _counter(self, node: ast.Attribute, step: Use) -> int | None:
        """The same for a field of the object that holds the optimizer in another field."""
        base = self.origins.path(node.value)
        optimizer = self.origins.path(step.owner)
        # state.optimizer, and not an optimizer by itself
        if base is None or optimizer is None or not optimizer.attributes:
            return None
        items = self.facts.objects(node.value)
        classes = {item.cls for item in items if isinstance(item, Instance)}
        if len(classes) != 1:
            return None
        *path, field = optimizer.attributes
        holder = Path(optimizer.root, tuple(path))
        parent = base.root.unit.parents[node]
        is_method = isinstance(parent, ast.Call) and parent.func is node
        # `state.optimizer` itself, or a method of the state
        if is_method or node.attr == field:
            return None
        # state.learning_rate
        if self.facts.of(FloatRates).is_float(node):
            return None
        if base != holder or not self._is_kept(node.value, step):
            return None
        return self.counters.ahead(classes.pop(), node.attr, field)
