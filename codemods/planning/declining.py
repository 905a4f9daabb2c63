"""Groups that the user declined, one by one, and what goes with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from codemods.analysis.facts import Facts
from codemods.analysis.removed_names import MODERNIZED
from codemods.inference.objects import LegacyObject
from codemods.model import Location, Refusal
from codemods.planning.decisions import Decision

DYNAMIC_SCALE = "FO501"
"""The rule for a class that has moved, and has to do with no optimizer."""


def decline(
    decisions: Sequence[Decision],
    facts: Facts,
    places: Collection[Location],
    first: Mapping[LegacyObject, Location],
) -> None:
    """Leave the groups at some places, with what goes with them.

    A site of no group may concern any optimizer of its program, as `OptimizerState(…)` does: all of
    them migrate with it, or all stay.

    Args:
      decisions: those of all groups.
      facts: what is known of the project.
      places: where groups begin that the user declined, and sites of no group.
      first: for each object where its group begins.
    """
    declined = set(places)
    for decision in filter(_goes_with_all, decisions):
        program = facts.together(decision.use.unit)
        groups = {place for obj, place in first.items() if obj.unit.path in program}
        # OptimizerState(step, param_states)
        if groups & declined:
            declined |= {*groups, decision.use.location}
    for decision in decisions:
        if _place(decision, first) in declined:
            decision.refuse(Refusal(decision.rule.code, "Declined.", ""), "suppressed")


def _goes_with_all(decision: Decision) -> bool:
    """Whether a site of no group may concern any optimizer of its program."""
    use = decision.use
    # an import stays for what needs it, and a removed name or a DynamicScale is of no optimizer
    is_apart = use.kind in ("import", *MODERNIZED)
    if is_apart or decision.rule.code == DYNAMIC_SCALE:
        return False
    return decision.applies and not use.objects


def _place(
    decision: Decision, first: Mapping[LegacyObject, Location]
) -> Location | None:
    """What a decision is declined by: its group, or the place of a site that has none."""
    use = decision.use
    if use.kind in ("import", *MODERNIZED):
        return None
    return first.get(use.objects[0]) if use.objects else use.location
