"""Learning rates that are a function of the optimizer's own step: in optax, a schedule."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial

from codemods.analysis.stepping import STEPS, Stepping
from codemods.analysis.uses import Use
from codemods.idioms import Unproven
from codemods.idioms.base import Results
from codemods.idioms.counts import Counts
from codemods.idioms.dead_code import DeadCode
from codemods.idioms.groups import (
    Outcomes,
    constructors,
    refuse_kept,
    refuse_templates,
)
from codemods.idioms.order import Edits
from codemods.idioms.passing import Passing
from codemods.idioms.rates import rate_of_step
from codemods.idioms.values import Values
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Prose
from codemods.optimizers import composite
from codemods.optimizers.base import RATE, learning_rate


@dataclass
class Schedule:
    """Where the schedule of a group of optimizers goes.

    `rates` has the source text of the learning rate for each constructor; `edits` has what changes
    elsewhere, by the node that it changes. It `counts` steps in the state unless the rate is a
    constant. `removed` has the nodes that are removed. It `is_copied` if what computes the rate
    stays as well.
    """

    rates: dict[ast.Call, str]
    edits: Edits
    counts: bool
    removed: set[ast.AST]
    is_copied: bool


COPIED = (
    "The schedule of the constructor is a copy of what computes this rate, which stays for others: "
    "change both together."
)


class Schedules(Outcomes[Schedule]):
    """A step with `learning_rate=f(optimizer.state.step)` computes what `optax.adam(f)` computes by
    itself. So the function moves to the constructor. The argument is removed, with the variables
    and parameters that nothing else uses.

    This requires that the optimizer takes its steps at one place, with a function of its own step,
    computed in the function that takes the step. The function must be known, or possible to make,
    where the optimizer is made, through parameters if necessary. A statement that makes it moves up
    only if it does nothing else and nothing that it reads has changed. A step that the program
    counts beside the optimizer is accepted if every place that may make or change one of the two is
    in view and keeps them equal, because the transformation always counts by itself. Otherwise the
    rate becomes an injected hyperparameter that is set before the step (FO204), and a note says
    why.

    The function stays the author's own, even if one of optax's looks like it, because optax's
    functions have other edge cases and other rounding: with no transition steps
    `optax.linear_schedule` stays at its first value for ever, `optax.cosine_decay_schedule` raises,
    and `optax.exponential_decay` computes in float32 where the author's computes in float64.
    """

    code = "FO404"
    summary = "a learning rate that follows the optimizer's own step is a schedule"
    kind = "schedule"
    before = """\
optimizer = optim.Adam(learning_rate).create(params)
learning_rate_fn = create_learning_rate_fn(config)

def train_step(optimizer, batch):
    ...
    lr = learning_rate_fn(optimizer.state.step)
    return optimizer.apply_gradient(grad, learning_rate=lr)
"""
    after = """\
learning_rate_fn = create_learning_rate_fn(config)
tx = optax.adam(learning_rate_fn)
optimizer = TrainState.create(apply_fn=model.apply, params=params, tx=tx)

def train_step(optimizer, batch):
    ...
    return optimizer.apply_gradients(grads=grad)
"""

    def __init__(self, stepping: Stepping, results: Results) -> None:
        super().__init__(stepping, results)
        if not self.is_wanted:
            return
        for members, steps in stepping.stepped_groups:
            if any(stepping.given_override(use) is not None for use in steps):
                self.attempt(members, partial(_schedule, stepping, members, steps))

    def note(self, use: Use) -> Prose:
        is_set = use.kind in STEPS and self.stepping.given_override(use) is not None
        why = self.reason(use.objects) if is_set else None
        schedule = self.of(use.objects) if is_set else None
        if schedule is not None and schedule.is_copied:
            return COPIED
        if why is None:
            return ""
        return message(
            "The learning rate is set before this step, and is no schedule: {}.", why
        )


def _schedule(
    stepping: Stepping,
    objects: list[LegacyObject],
    steps: list[Use],
) -> Schedule:
    """The proof for one group, step by step; whatever cannot be proven raises `Unproven`."""
    calls = _constructors(stepping, objects)
    if len(steps) > 1:
        raise Unproven("the optimizer takes steps at several places")
    [step] = steps
    given = _given(step, stepping)
    origins = stepping.origins
    values = Values(origins)
    rate = rate_of_step(given, step, Counts(origins), values)
    values.refuse_changes(rate, calls, objects)
    passing = Passing(origins, rate, "schedule")
    filled = passing.as_argument({call: learning_rate(call) for call in calls})
    dead_code = DeadCode(origins, passing.edits, passing.needed, ())
    dead_code.clear(given)
    refuse_kept((step, *objects), stepping)
    counts = not isinstance(rate.expression, ast.Constant)
    # lr = 0.1 / (1 + optimizer.state.step), of which the metrics have the value, too
    setting = origins.setting(origins.variable(given))
    is_written = any(rate.startswith("lambda") for rate in filled.values())
    is_copied = is_written and setting is not None and setting not in dead_code.edits
    return Schedule(filled, dead_code.edits, counts, dead_code.removed, is_copied)


def _given(use: Use, stepping: Stepping) -> ast.expr:
    """The learning rate that a step gives."""
    override = stepping.given_override(use)
    if override is None:
        raise Unproven("a step does without it")
    if override.arg != RATE:
        raise Unproven("the step is given the hyperparameters as a whole")
    return override.value


def _constructors(stepping: Stepping, objects: list[LegacyObject]) -> list[ast.Call]:
    """The constructors of a group's optimizers that take a learning rate."""
    made = constructors(objects, stepping)
    reading = (
        use for use in stepping.facts.uses if use.kind == "definition.hyper_params"
    )
    if any(not {*objects}.isdisjoint(use.objects) for use in reading):
        raise Unproven("the hyperparameters of the optimizer are read")
    refuse_templates(objects, stepping)
    return [call for call, obj in made.items() if obj.made_by not in composite()]


IDIOM = Schedules
