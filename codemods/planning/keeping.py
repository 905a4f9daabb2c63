"""The groups that may migrate if their definitions keep the interface that they had."""

from __future__ import annotations

from collections import defaultdict

from codemods.analysis.facts import Facts
from codemods.analysis.legacy import Unnamed
from codemods.analysis.stepping import field_read
from codemods.containment import INTERNAL
from codemods.inference.objects import LegacyObject
from codemods.messages import message
from codemods.model import Message
from codemods.optimizers.interface import has_interface, interface_of
from codemods.planning.decisions import Decision, Plan
from codemods.planning.groups import UNNAMED, grouped, refused_groups


def may_keep_interface(plan: Plan) -> dict[LegacyObject, Message]:
    """The objects of groups that stay, and why, but may migrate with the interface they had."""
    facts = plan.facts
    groups = grouped(plan)
    members: dict[LegacyObject, list[LegacyObject]] = defaultdict(list)
    for obj, group in groups.items():
        members[group].append(obj)
    # the decisions about objects, then those about classes
    causes = refused_groups(plan, [*filter(_is_worth_it, plan.decisions)])
    for decision in plan.decisions:
        use = decision.use
        # a refused class of which no object is known: `class Mine(optim.Adam)`
        if decision.applies or use.objects or not interface_of(use.name):
            continue
        program = facts.together(use.unit)
        classes = (Unnamed.CUSTOM, use.name)
        for obj, group in groups.items():
            if obj.made_by in classes and obj.unit.path in program:
                causes.setdefault(group, decision)
    found: dict[LegacyObject, Message] = {}
    for group, cause in causes.items():
        # what a comment or the selection keeps stays as the user has it, and what waits for files
        # to be named, or an error within this tool, is nothing that an interface could help
        is_other = cause.code == UNNAMED or cause.code == INTERNAL
        if cause.status != "unresolved" or is_other:
            continue
        if _can_keep_interface(members[group], facts):
            assert cause.refusal is not None
            reason = message("{}", cause.refusal.reason).as_clause()
            why = message("{} ({}).", reason, cause.use.location)
            found |= dict.fromkeys(members[group], why)
    return found


def _is_worth_it(decision: Decision) -> bool:
    """Whether a site that stays needs an interface, and not just a number that it reads.

    A class of the program's own keeps its methods, and all that they read, in any case.
    """
    use = decision.use
    if use.kind != "definition.hyper_params" or field_read(use) is None:
        return True
    return any(obj.made_by is Unnamed.CUSTOM for obj in use.objects)


def _can_keep_interface(members: list[LegacyObject], facts: Facts) -> bool:
    """Whether all definitions of a group are made in view, by classes that have an interface."""
    in_view = [obj for obj in members if obj.evidence == "proven"]
    definitions = [obj for obj in in_view if obj.kind == "definition"]
    if not definitions or not all(map(_can_have_interface, definitions)):
        return False
    # each optimizer that is created in view has to have known definitions
    optimizers = (obj for obj in in_view if obj.kind == "optimizer")
    return all(map(facts.legacy.definitions, optimizers))


def _can_have_interface(definition: LegacyObject) -> bool:
    """Whether the class that made a definition is the program's own, or has an interface."""
    name = definition.made_by
    # class Lion(OptimizerDef), or getattr(optim, name)
    if name in (Unnamed.CUSTOM, Unnamed.RUN_TIME):
        return True
    return isinstance(name, str) and has_interface(name)


def staying(plan: Plan) -> set[LegacyObject]:
    """The groups that stay: one site is refused, or no file can have the classes they need.

    Those do not that would migrate if more files were named.
    """
    causes = refused_groups(plan)
    found = {group for group, cause in causes.items() if cause.code != UNNAMED}
    groups = grouped(plan)
    for decision in plan.decisions:
        is_homeless = decision.use.unit in plan.shared.homeless
        supports = decision.edit.supports if decision.edit is not None else ()
        has_helpers = any(support.is_shared for support in supports)
        if decision.applies and is_homeless and has_helpers:
            found |= {groups[obj] for obj in decision.use.objects}
    return found
