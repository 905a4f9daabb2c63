"""Groups that have sites in files which are only context: these stay, and tell which files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from dataclasses import replace

from codemods.inference.objects import LegacyObject
from codemods.messages import joined, message
from codemods.model import File, Message, Refusal
from codemods.planning.decisions import Decision, Plan
from codemods.rules import reasons
from codemods.sources.modules import Unit

UNNAMED = "FO931"
"""The reason of what stays because files were not named."""

Groups = Mapping[LegacyObject, LegacyObject]
Causes = MutableMapping[LegacyObject, Decision]
"""The groups that stay, each with the site for the sake of which it does."""


def leave_unnamed(plan: Plan, groups: Groups, causes: Causes) -> None:
    """Refuse a site of each group that would migrate but for the context; `causes` gets it.

    With `--partial`, a group stays for the sake of the context even if it would not migrate whole:
    nothing can mark what is left of it there.
    """
    outside: dict[LegacyObject, dict[str, None]] = defaultdict(dict)
    for decision in plan.decisions:
        unit, group = decision.use.unit, _group(decision, groups)
        if unit.writable or group is None:
            continue
        if plan.options.partial or group not in causes:
            outside[group][unit.path] = None
    # the report has only the files that were named, so one of these is told
    named_first = sorted(plan.decisions, key=lambda one: not one.use.unit.writable)
    told: set[LegacyObject] = set()
    for decision in named_first:
        group = _group(decision, groups)
        if group is None or group not in outside:
            continue
        paths = tuple(outside[group])
        if not decision.applies:
            decision.waits_for(paths)
        elif group not in told:
            told.add(group)
            decision.refuse(_unnamed(decision.use.unit, paths))
            causes[group] = decision


def leave_context(plan: Plan) -> None:
    """Refuse whatever else would change in files that are only context."""
    for decision in plan.decisions:
        unit = decision.use.unit
        if decision.applies and not unit.writable:
            decision.refuse(_unnamed(unit, (unit.path,)))


def _group(decision: Decision, groups: Groups) -> LegacyObject | None:
    objects = decision.use.objects
    return groups[objects[0]] if objects else None


def _unnamed(unit: Unit, paths: tuple[str, ...]) -> Refusal:
    verb = "was" if len(paths) == 1 else "were"
    refusal = reasons.unnamed(
        message(
            f"This optimizer is used in {{}} too, which {verb} not named.",
            _listed(paths),
        ),
        message(
            "Name {} as well, or run `optim2optax rewrite --with-related {}`.",
            _listed(paths),
            File(unit.path),
        ),
    )
    return replace(refusal, related=paths)


def _listed(paths: tuple[str, ...]) -> Message:
    """`a.py, b.py and c.py`."""
    *others, last = map(File, paths)
    if not others:
        return message("{}", last)
    return message("{} and {}", joined(", ", others), last)
