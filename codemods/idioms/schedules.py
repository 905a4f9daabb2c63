"""Learning rates that are a function of the optimizer's own step: in optax, a schedule."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.stepping import Stepping
from codemods.analysis.uses import Use
from codemods.flow.objects import Thing
from codemods.idioms import Unproven
from codemods.idioms.counts import Counts
from codemods.idioms.groups import Outcomes, constructors, refuse_plain, refuse_templates
from codemods.idioms.leftovers import Leftovers
from codemods.idioms.order import Edits
from codemods.idioms.passing import Passing
from codemods.idioms.rates import Rates
from codemods.idioms.values import Values, common_value
from codemods.model import Message
from codemods.optimizers import composite
from codemods.optimizers.base import RATE, learning_rate

CODE = "FO404"

READING = ("definition.hyper_params", "definition.apply_gradient")
"""The uses that read the hyperparameters of a definition."""


@dataclass
class Schedule:
    """Where the schedule of a group of optimizers goes.

    `rates` has the source text of the learning rate for each constructor; `edits` has what changes
    elsewhere, by the node that it changes. It `counts` steps in the state unless the rate is a
    constant. `gone` has the nodes that are removed.
    """

    rates: dict[ast.Call, str]
    edits: Edits
    counts: bool
    gone: set[ast.AST]


class Schedules(Outcomes[Schedule]):
    """The schedules of a project, by the objects of their groups, or why a group has none."""

    kind = "schedule"

    def __init__(self, stepping: Stepping) -> None:
        super().__init__()
        if stepping.options.partial or not stepping.options.selects(CODE):
            return
        for members, steps in stepping.stepped_groups:
            if any(stepping.given_override(use) is not None for use in steps):
                try:
                    outcome: Schedule | Message = _schedule(stepping, members, steps)
                except Unproven as why:
                    outcome = why.message
                self.add(members, outcome)


def _schedule(stepping: Stepping, things: list[Thing], steps: list[Use]) -> Schedule:
    """The proof for one group, step by step; whatever cannot be proven raises `Unproven`."""
    calls = _constructors(stepping, things)
    origins = stepping.origins
    values = Values(origins)
    rates = Rates(origins, Counts(origins), values)
    rate = common_value([rates.of_step(_given(use, stepping), use) for use in steps])
    values.refuse_changes(rate, calls, things)
    passing = Passing(origins, rate, "schedule")
    filled = passing.as_argument({call: learning_rate(call) for call in calls})
    leftovers = Leftovers(origins, passing.edits, passing.needed, ())
    for use in steps:
        leftovers.clear(_given(use, stepping))
    refuse_plain(leftovers.edits, (*steps, *things), stepping)
    counts = not isinstance(rate.expression, ast.Constant)
    return Schedule(filled, leftovers.edits, counts, leftovers.gone)


def _given(use: Use, stepping: Stepping) -> ast.expr:
    """The learning rate that a step gives."""
    override = stepping.given_override(use)
    if override is None or override.arg != RATE:
        raise Unproven("a step does without it")
    return override.value


def _constructors(stepping: Stepping, things: list[Thing]) -> list[ast.Call]:
    """The constructors of a group's optimizers that take a learning rate."""
    made = constructors(things, stepping)
    reading = (use for use in stepping.facts.uses if use.kind in READING)
    if any(not {*things}.isdisjoint(use.things) for use in reading):
        raise Unproven("the hyperparameters of the optimizer are read")
    refuse_templates(things, stepping)
    return [call for call, thing in made.items() if thing.made_by not in composite()]
