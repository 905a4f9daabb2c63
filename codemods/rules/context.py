"""What a rule may ask beside its own use: the whole project's uses, seen from one optimizer or definition."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from codemods.exposure import exposed_classes
from codemods.facts import Facts, unify
from codemods.flow.objects import Container, Thing
from codemods.uses import Use

BATCH = "batch"
"""The axis over which `Optimizer.replicate()` averaged by default."""


class Context:
    """The facts, and the uses of the project by the things that meet at them."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @cached_property
    def _steps(self) -> dict[Thing, list[Use]]:
        steps: dict[Thing, list[Use]] = defaultdict(list)
        for use in self.facts.uses:
            if use.kind == "optimizer.apply_gradient" or (use.kind == "optimizer.optimize"):
                for thing in use.things:
                    steps[thing].append(use)
        return steps

    def call_of(self, use: Use) -> ast.Call | None:
        """The call of the attribute that a use is about; None where the attribute is not called."""
        parent = use.unit.parents.get(use.node)
        return parent if isinstance(parent, ast.Call) and parent.func is use.node else None

    def override(self, use: Use) -> ast.keyword | None:
        """The `learning_rate=` that a step gives."""
        call = self.call_of(use)
        return next((word for word in call.keywords if word.arg == "learning_rate"), None) if call else None

    def steps(self, optimizers: Iterable[Thing]) -> list[Use]:
        """Where these optimizers take a step."""
        return list(dict.fromkeys(use for thing in optimizers for use in self._steps[thing]))

    def definitions(self, use: Use) -> list[Thing]:
        """The definitions from which the optimizers at a use were made."""
        return list(dict.fromkeys(found for thing in use.things for found in self.facts.legacy.definitions(thing)))

    def optimizers_of(self, definition: Thing) -> list[Thing]:
        """The optimizers that were made from a definition, directly or as a part of another."""
        return [thing for thing in self._steps if definition in self.facts.legacy.definitions(thing)]

    @cached_property
    def has_rate_among_params(self) -> bool:
        """Whether a model of the project has a parameter called `learning_rate`."""
        return any(
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "param"
            and any(isinstance(word, ast.Constant) and word.value == "learning_rate" for word in call.args[:1])
            for _, call in self.facts.flow.reading.calls
        ) or any(
            isinstance(key, ast.Constant) and key.value == "learning_rate"
            for optimizer in self.facts.groups
            if optimizer.kind == "optimizer"
            for item in self.facts.target(optimizer)
            if isinstance(item, Container) and isinstance(item.node, ast.Dict)
            for key in item.node.keys
        )

    def companions(self, optimizers: Iterable[Thing]) -> list[Thing]:
        """Optimizers, and all others that reach a place which one of them, or another companion, reaches."""
        found = dict.fromkeys(optimizers)
        groups = {self._meeting.get(thing) for thing in found}
        return list({**found, **{thing: None for thing, group in self._meeting.items() if group in groups}})

    @cached_property
    def _meeting(self) -> dict[Thing, Thing]:
        return unify(use.things for use in self.facts.uses if use.kind.startswith("optimizer."))

    @cached_property
    def _axes(self) -> dict[Thing, set[str | None]]:
        """The axes over which optimizers average their gradients since `Optimizer.replicate()`; None: not plain to see."""
        axes: dict[Thing, set[str | None]] = defaultdict(set)
        for use in self.facts.uses:
            call = self.call_of(use) if use.kind == "optimizer.replicate" else None
            if call is not None:
                given = [word.value for word in call.keywords if word.arg != "devices"] + call.args[1:]
                name: object = BATCH
                if given:
                    name = given[0].value if isinstance(given[0], ast.Constant) and len(given) == 1 else None
                for thing in use.things:
                    axes[thing].add(name if isinstance(name, str) else None)
        return axes

    def axes(self, optimizers: Iterable[Thing]) -> set[str | None]:
        """The axes over which the gradients of some optimizers are averaged since `Optimizer.replicate()`.

        Empty if none does that. Among several, None stands for one that is not plain to see, or for no averaging.
        """
        found = list(optimizers)
        if self._axes.keys().isdisjoint(found):
            return set()
        return {axis for thing in found for axis in self._axes.get(thing, {None})}

    @cached_property
    def exposed(self) -> frozenset[str]:
        """The legacy classes in the place of which no function can stand."""
        return exposed_classes(self.facts)

    @cached_property
    def injected(self) -> frozenset[Thing]:
        """The definitions whose learning rate is set at a step."""
        return frozenset(
            definition
            for uses in self._steps.values()
            for use in uses
            if self.override(use) is not None
            for definition in self.definitions(use)
        )


def is_path(node: ast.expr) -> bool:
    """Whether evaluating an expression twice is the same as once: names, attributes and constant subscripts."""
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant()):
            return is_path(value)
        case _:
            return False
