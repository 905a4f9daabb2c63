"""Learning rates that steps set: in optax, numbers among the hyperparameters in the state."""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import cached_property
from itertools import chain

from codemods.analysis.handling import Handling
from codemods.analysis.stepping import Stepping, rate_read
from codemods.analysis.uses import Use
from codemods.idioms.base import Results
from codemods.idioms.made_with import MadeWith
from codemods.idioms.schedules import Schedules
from codemods.inference.objects import LegacyObject

MIXING = ("stored", "restored", "state_dict", "checkpoint", "optimizer.restore_state")
"""Uses of an optimizer that may give it the state of another."""


class Overrides:
    """The rates that steps set, but for schedules, and the definitions whose state has them."""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        self.stepping = stepping
        self.facts = stepping.facts
        self.schedules = results[Schedules]
        self.made_with = results[MadeWith]

    def of(self, use: Use) -> ast.keyword | None:
        """The `learning_rate=` or `hyper_params=` of a step, unless it becomes a schedule."""
        return (
            None
            if self.schedules.of(use.objects)
            else self.stepping.given_override(use)
        )

    def keeps_rate(self, use: Use) -> bool:
        """Whether a step has the constructor's rate, and the state may have one that was set."""
        if not self._is_bare(use):
            return False
        is_set = not self.overridden.isdisjoint(self.stepping.definitions(use))
        return is_set and self._may_have_other(use)

    def _may_have_other(self, use: Use) -> bool:
        """Whether the optimizers at a step may have the state of one whose steps set a rate."""
        optimizers = {*self.stepping.companions(use.objects)}
        if any(obj.evidence != "proven" for obj in optimizers):
            return True
        steps = self.stepping.steps(optimizers)
        joined = self.facts.of(Handling).joined
        if any(self.of(step) is not None for step in steps) or optimizers & joined:
            return True
        return any(
            (other.kind in MIXING or _takes_state(other))
            and not optimizers.isdisjoint(other.objects)
            for other in self.facts.uses
        )

    def _is_bare(self, use: Use) -> bool:
        is_given = self.stepping.given_override(use) is not None
        return not is_given and not self.schedules.of(use.objects)

    def is_fixed(
        self,
        definitions: Collection[LegacyObject],
        objects: Collection[LegacyObject],
    ) -> bool:
        """Whether the constructors' rates of some definitions hold for all of some objects."""
        injected = self.injected | self.stepping.decay_is_set
        return injected.isdisjoint(definitions) and self.schedules.of(objects) is None

    def is_copied(self, use: Use) -> bool:
        """Whether what is read becomes a copy of a number that is in another function.

        The state does not have it: other rates are set there, or it is no learning rate.
        """
        if not self.made_with.is_far(use):
            return False
        return rate_read(use) is None or not self.overridden.isdisjoint(use.objects)

    @cached_property
    def injected(self) -> frozenset[LegacyObject]:
        """The definitions whose learning rate is in the state: it is set by a step, or read."""
        found: set[LegacyObject] = set()
        for use in self.facts.uses:
            if use.kind != "definition.hyper_params" or rate_read(use) is None:
                continue
            if self.made_with.value(use) is None or self.made_with.is_far(use):
                found.update(use.objects)
        return self.overridden | found

    @cached_property
    def overridden(self) -> frozenset[LegacyObject]:
        """The definitions whose learning rate is set at a step."""
        found: set[LegacyObject] = set()
        for use in self.stepping.all_steps:
            if self.of(use) is not None:
                found.update(self.stepping.definitions(use))
        for use in self.facts.uses:
            # what one program stores of a class that has a field for it, another loads
            if use.kind == "annotation" and _is_of_field(use):
                together = self.stepping.definitions(use)
                if not found.isdisjoint(together):
                    found.update(together)
        for pair in self.stepping.exchanging:
            both = {*chain.from_iterable(map(self.facts.legacy.definitions, pair))}
            if not found.isdisjoint(both):
                found |= both
        # a step that sets the rate of one again sets that of all that take it
        bare = [
            {*self.stepping.definitions(use)}
            for use in self.stepping.all_steps
            if self._is_bare(use)
        ]
        while meeting := [one for one in bare if one & found and not one <= found]:
            found = found.union(*meeting)
        return frozenset(found)


def _takes_state(use: Use) -> bool:
    """Whether an optimizer gets a state: `optimizer.replace(state=other.state)`."""
    words = use.call.keywords if use.call is not None else []
    is_replaced = use.kind == "optimizer.replace"
    return is_replaced and any(word.arg != "target" for word in words)


def _is_of_field(use: Use) -> bool:
    """Whether an annotation is that of a field of a class."""
    statement = use.unit.parents.get(use.node)
    return isinstance(statement, ast.AnnAssign) and isinstance(
        use.unit.parents.get(statement), ast.ClassDef
    )
