"""What is said where a migrating optimizer goes out of view, which holds nobody back."""

from __future__ import annotations

from codemods.analysis.escapes import RATE, READ, escapes, untraced
from codemods.analysis.pickles import PICKLED, UNPICKLED, held_before, pickles
from codemods.analysis.state_dicts import KIND, looked_into
from codemods.analysis.uses import Use
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Refusal
from codemods.planning.decisions import Decision, Plan
from codemods.planning.groups import grouped
from codemods.rules import catalogue, reasons

INTERFACE = "FO706"


def escaping(plan: Plan) -> list[Decision]:
    """A hint for each line where what migrates goes out of view, or may come back unseen."""
    found: list[Decision] = []
    migrating = _migrating(plan)
    uses = [*escapes(plan.facts, migrating), *looked_into(plan.facts, migrating)]
    uses += (
        use
        for use in plan.facts.of(pickles)
        if use.name == UNPICKLED and not set(migrating).isdisjoint(use.objects)
    )
    lines = {(use.unit, use.node.lineno) for use in uses}
    uses += [
        use
        for use in untraced(plan.facts, migrating)
        if (use.unit, use.node.lineno) not in lines
    ]
    for use in sorted(uses, key=lambda use: (use.unit.path, use.span)):
        held = held_before(use, plan.facts) if use.name == UNPICKLED else None
        refusal = _told(use, held)
        decision = Decision(use, catalogue()[refusal.code], None)
        decision.refuse(refusal, "hint")
        if not plan.is_suppressed(decision) and plan.options.selects(refusal.code):
            found.append(decision)
    return found


def _migrating(plan: Plan) -> list[LegacyObject]:
    """The objects that become something else: definitions with their old interface do not."""
    groups = grouped(plan)
    changed: set[LegacyObject] = set()
    kept: set[LegacyObject] = set()
    for decision in plan.decisions:
        if decision.applies:
            of_use = {groups[obj] for obj in decision.use.objects if obj in groups}
            changed |= of_use
            if decision.code == INTERFACE:
                kept |= of_use
    return [
        obj
        for obj, group in groups.items()
        if group in changed and (obj.kind != "definition" or group not in kept)
    ]


TOLD = {
    KIND: (
        (
            "The state dict of an optimizer is read here: its keys are `step`, `params` and "
            "`opt_state` now, where they were `target` and `state`."
        ),
        "See to what is done with the keys.",
    ),
    PICKLED: (
        (
            "An optimizer is pickled here in something else: a train state holds functions, which "
            "cannot be."
        ),
        "Pickle `state.replace(apply_fn=None, tx=None)` in its place.",
    ),
    RATE: (
        (
            "This step sets the learning rate in the state, and what makes the optimizer is not "
            "in view: the state has none unless `optax.inject_hyperparams` makes it."
        ),
        "See to what makes its transformation.",
    ),
}
"""What is said of uses of some kinds, and what helps."""


def _told(use: Use, held: str | None) -> Refusal:
    """What is said of a use; `held` is whose transformation is given to what was pickled."""
    if use.kind in TOLD:
        return reasons.out_of_view(*TOLD[use.kind])
    if use.name == UNPICKLED and held:
        return reasons.out_of_view(
            f"What was pickled has no transformation now: it gets that of `{held}`, which is made "
            "here; legacy went on with the hyperparameters that were stored.",
            "Make it as what was pickled was made.",
        )
    if use.name == UNPICKLED:
        return reasons.out_of_view(
            "What was pickled is a train state now, without its transformation.",
            "Give it one before it takes a step: `.replace(tx=…)`.",
        )
    if use.kind == READ:
        return reasons.out_of_view(
            f"Nothing is known of what has `{use.name}` here. If it is an optimizer or a "
            "definition, it has other attributes now.",
            "See to where it comes from, and change this line if it is one.",
        )
    if any(obj.kind == "optimizer" for obj in use.objects):
        what, now = "optimizer", "a train state now, of which `target` is `params`"
    else:
        what, now = "definition", "a transformation of optax now, without `create`"
    return reasons.out_of_view(
        message(
            "The {} goes out of view here, to `{}`: it is {}.", what, use.name, now
        ),
        "See to what is read of it there, and of what that gives back.",
    )
