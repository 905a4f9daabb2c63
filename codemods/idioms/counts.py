"""Which expressions are the number of steps that an optimizer has taken."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.facts import Facts
from codemods.flow.objects import Instance
from codemods.idioms.counters import Counters
from codemods.origins import Origins, Path, place_of, taking_effect
from codemods.uses import Use


@dataclass(frozen=True)
class Step:
    """A step as seen in some function: the optimizer that takes it, and the node at which it does, or at which a call does it."""

    optimizer: Path | None
    node: ast.expr


class Counts:
    """Compares what a step is given with the optimizer that takes it."""

    def __init__(self, facts: Facts, origins: Origins) -> None:
        self.facts = facts
        self.origins = origins
        self.counters = Counters(facts, origins)

    def step(self, use: Use) -> Step:
        """The step that a use takes."""
        assert isinstance(use.node, ast.Attribute)
        return Step(self.origins.path(use.node.value), use.node)

    def ahead(self, node: ast.expr, step: Step) -> int | None:
        """By how much an expression is larger than the optimizer's own count before a step; None if that is not known.

        Args:
          node: an expression in the function of the step.
          step: the step.

        Raises:
          Unproven: if it is a count of its own that does not always agree.
        """
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=int(more))):
                count = self.ahead(left, step)
                return None if count is None else count + more
            case ast.Name():
                value = self.origins.local_value(node)
                return None if value is None else self.ahead(value, step)
            case ast.Attribute(attr=name, value=state):
                owner = _owner_of_state(state) if name == "step" else None
                if owner is not None and self.facts.things(owner, "optimizer"):
                    return 0 if self._is_stepped(self.origins.path(owner), node, step) else None
                return self._counter(node, step)
        return None

    def _is_stepped(self, path: Path | None, node: ast.expr, step: Step) -> bool:
        """Whether the optimizer at a path is, unchanged, the one that takes the step."""
        return path is not None and path == step.optimizer and self._unchanged(path, node, step.node)

    def _counter(self, node: ast.Attribute, step: Step) -> int | None:
        """The same for a field of the object that holds the optimizer in another field."""
        base, optimizer = self.origins.path(node.value), step.optimizer
        classes = {item.cls for item in self.facts.objects(node.value) if isinstance(item, Instance)}
        if base is None or optimizer is None or not optimizer.attributes or len(classes) != 1:
            return None
        holder, field = Path(optimizer.root, optimizer.attributes[:-1]), optimizer.attributes[-1]
        parent = base.root.unit.parents[node]
        if node.attr == field or (isinstance(parent, ast.Call) and parent.func is node):
            return None
        if base != holder or not self._unchanged(base, node, step.node):
            return None
        return self.counters.ahead(classes.pop(), node.attr, field)

    def _unchanged(self, path: Path, first: ast.AST, second: ast.AST) -> bool:
        """Whether a path leads to the same object at two places of a function."""
        if not self.origins.unchanged(path.root, first, second):
            return False
        owner = path.root.scope.parent
        in_method = owner is not None and isinstance(owner.node, ast.ClassDef)
        for node in self.origins.between(path.root.unit, first, second):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()) if name in path.attributes:
                    if taking_effect(path.root.unit, node) < place_of(second):
                        return False
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if in_method and name == path.root.name:
                    return False
        return True


def _owner_of_state(node: ast.expr) -> ast.expr | None:
    """The optimizer in `optimizer.state`, or in `optimizer.state[0]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        node = node.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "state" else None
