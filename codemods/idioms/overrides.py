"""Learning rates that are set at steps, and stay so: in optax, numbers among the hyperparameters in the state."""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import cached_property

from codemods.analysis.param_names import ParamNames
from codemods.analysis.stepping import Stepping, bare_step, new_rate, rate_read
from codemods.analysis.uses import Use
from codemods.flow.objects import Thing
from codemods.idioms.schedules import Schedules


class Overrides:
    """The rates that steps set, but for those that become schedules, and the definitions whose rates are so in the state."""

    def __init__(self, stepping: Stepping, schedules: Schedules, param_names: ParamNames) -> None:
        self.stepping = stepping
        self.facts = stepping.facts
        self.schedules = schedules
        self.param_names = param_names

    def of(self, use: Use) -> ast.keyword | None:
        """The `learning_rate=` or `hyper_params=` that a step gives, unless it becomes a schedule in the transformation."""
        return None if self.schedules.of(use.things) else self.stepping.given_override(use)

    def keeps_rate(self, use: Use) -> bool:
        """Whether a step keeps the rate that the constructor was given, where another step of such an optimizer sets one."""
        is_bare = self.stepping.given_override(use) is None and not self.schedules.of(use.things)
        return is_bare and not self.overridden.isdisjoint(self.stepping.definitions(use))

    def is_fixed(self, definitions: Collection[Thing], things: Collection[Thing]) -> bool:
        """Whether the rate of all these definitions is the one that the constructor is given, for all of these things."""
        return self.injected.isdisjoint(definitions) and self.schedules.of(things) is None

    @cached_property
    def injected(self) -> frozenset[Thing]:
        """The definitions whose learning rate is in the state, because a step sets it or something reads it there."""
        read = (
            use
            for use in self.facts.uses
            if use.kind == "definition.hyper_params" and rate_read(use) is not None
        )
        return self.overridden | {thing for use in read for thing in use.things}

    @cached_property
    def overridden(self) -> frozenset[Thing]:
        """The definitions whose learning rate is set at a step."""
        overriding = (use for use in self.stepping.all_steps if self.of(use) is not None)
        bare = [use for use in self.facts.uses if use.kind == "definition.apply_gradient"]
        rated = (
            use
            for use in bare
            if (given := bare_step(use.call)) and new_rate(given["hyper_params"]) is not None
        )
        definitions = {
            definition for use in overriding for definition in self.stepping.definitions(use)
        }
        return frozenset(definitions | {thing for use in rated for thing in use.things})
