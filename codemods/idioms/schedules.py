"""Learning rates that are a function of the optimizer's own step: in optax, a schedule within the transformation."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codemods.edits import Replace
from codemods.flow.objects import Thing
from codemods.idioms import Unproven
from codemods.idioms.counts import Counts
from codemods.idioms.groups import Outcomes, constructors, refuse_templates
from codemods.idioms.leftovers import Leftovers
from codemods.idioms.order import Edits
from codemods.idioms.passing import Passing
from codemods.idioms.rates import Rates
from codemods.idioms.standard import standard
from codemods.idioms.values import Values, common_value
from codemods.optimizers.base import RATE, learning_rate
from codemods.optimizers.functions import COMPOSITE
from codemods.origins import Variable, place_of
from codemods.uses import Use

if TYPE_CHECKING:
    from codemods.rules.context import Context


CODE, BY_OPTAX = "FO404", "FO405"


@dataclass
class Schedule:
    """Where the schedule of a group of optimizers goes.

    `rates` has the source text of the learning rate for each constructor; `edits` has what changes elsewhere, by the node that it
    changes. It `counts` steps in the state unless the rate is a constant. `gone` has the nodes that go.
    """

    rates: dict[ast.Call, str]
    edits: Edits
    counts: bool
    gone: set[ast.AST]


class Schedules(Outcomes[Schedule]):
    """The schedules of a project, by the things of their groups; for a group that has none, the reason."""

    kind = "schedule"

    def __init__(self, context: Context) -> None:
        super().__init__()
        if context.options.partial or not context.options.selects(CODE):
            return
        for members, steps in context.stepped_groups:
            if any(context.given_override(use) is not None for use in steps):
                try:
                    outcome: Schedule | str = _Attempt(context, members, steps).schedule()
                except Unproven as why:
                    outcome = str(why)
                self.add(members, outcome)

    def kind_of(self, node: ast.AST) -> str:
        """The kind of use that a change at a node is: a lambda becomes a schedule of optax."""
        return "standard" if isinstance(node, ast.Lambda) else self.kind


class _Attempt:
    """The proof for one group, step by step; whatever cannot be shown raises `Unproven`."""

    def __init__(self, context: Context, things: list[Thing], steps: list[Use]) -> None:
        self.context = context
        self.facts = context.facts
        self.things = things
        self.steps = steps

    def schedule(self) -> Schedule:
        calls = self._constructors()
        origins = self.context.origins
        by_optax = self.context.options.selects(BY_OPTAX)
        values = Values(self.facts, origins)
        rates = Rates(origins, Counts(self.facts, origins), values, by_optax)
        rate = common_value([rates.of_step(self._override(use), use) for use in self.steps])
        if not isinstance(rate.expression, ast.Lambda):
            values.refuse_changes(rate, calls, [use.node for use in self.steps])
        passing = Passing(self.facts, origins, rate, "schedule")
        filled = passing.as_argument({call: learning_rate(call) for call in calls})
        for variable in passing.needed if by_optax else ():
            self._exchange(variable, passing.edits, values)
        leftovers = Leftovers(self.facts, origins, passing.edits, passing.needed, ())
        for use in self.steps:
            leftovers.clear(self._override(use))
        changed = {use.unit for use in self.steps} | {thing.unit for thing in self.things}
        if not changed.isdisjoint(self.context.plain) or any(
            unit in self.context.plain for unit, _ in leftovers.edits.values()
        ):
            raise Unproven("the file could not be rewritten in this form")
        return Schedule(filled, leftovers.edits, not isinstance(rate.expression, ast.Constant), leftovers.gone)

    def _exchange(self, variable: Variable, edits: Edits, values: Values) -> None:
        """Let a schedule that is a lambda be made by optax, if it is one of optax's, of what stays as it is."""
        function = self.context.origins.value(variable)
        match function:
            case ast.Lambda(args=ast.arguments(args=[ast.arg(arg=step)], defaults=[]), body=body):
                made = standard(
                    body, lambda node: 0 if isinstance(node, ast.Name) and node.id == step else None, self.facts
                )
                if made is not None and "{" not in ast.unparse(made) and self._is_lasting(made, function, values):
                    template = ast.unparse(made).replace("optax.", "{optax}.")
                    edits.put(function, variable.unit, Replace(variable.unit.span(function), template))

    def _is_lasting(self, made: ast.expr, function: ast.Lambda, values: Values) -> bool:
        """Whether what a schedule is made of is the same whenever its function is called."""
        try:
            value = values.of(made, longest=len(ast.unparse(made)))
            values.refuse_changes(value, [function], [use.node for use in self.steps])
        except Unproven:
            return False
        here = [part.variables[0] for part in value.parts if part.variables[0].scope is self.facts.scope(function)]
        settings = [self.context.origins.setting(variable) for variable in here]
        return all(setting is None or place_of(setting) < place_of(function) for setting in settings)

    def _override(self, use: Use) -> ast.expr:
        override = self.context.given_override(use)
        if override is None or override.arg != RATE:
            raise Unproven("a step does without it")
        return override.value

    def _constructors(self) -> list[ast.Call]:
        """The constructors of the group's optimizers that take a learning rate."""
        made = constructors(self.things, self.context)
        concerned = {*self.things}
        for use in self.facts.uses:
            if use.kind in ("definition.hyper_params", "definition.apply_gradient") and concerned & {*use.things}:
                raise Unproven("the hyperparameters of the optimizer are read")
        refuse_templates(self.things, self.context)
        return [call for call, thing in made.items() if thing.name not in COMPOSITE]
