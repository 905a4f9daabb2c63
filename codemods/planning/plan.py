"""What becomes of every use: the decisions of the rules, made whole for each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codemods.analysis.facts import Facts
from codemods.analysis.import_names import names_for
from codemods.analysis.removed_names import MODERNIZED, UNKNOWN
from codemods.analysis.uses import Use
from codemods.containment import Failure
from codemods.inference.objects import LegacyObject
from codemods.messages import joined
from codemods.model import Message, Options, Refusal
from codemods.planning.decisions import Attempts, Decision, Plan
from codemods.planning.groups import (
    complete_groups,
    grouped,
    keep_modules,
    leave_context,
)
from codemods.planning.judging import judge, of_failure, still_left
from codemods.planning.keeping import may_keep_interface, staying
from codemods.planning.sharing import shared
from codemods.rewriting.edits import ConvertDefinition, Edit, Keep
from codemods.rules import Rule, catalogue, rule_for
from codemods.rules.context import Context
from codemods.rules.interface import is_decided
from codemods.sources.suppression import left, suppressions


def make_plan(facts: Facts, options: Options, attempts: Attempts) -> Plan:
    """Decide on every use.

    The groups that reach a file that failed are refused. The optimizers that cannot migrate as
    optax has them keep the interface of their definitions, where that makes them whole.
    """
    blank = Plan(facts, options)
    for unit in facts.project.units:
        blank.names[unit] = names_for(unit, facts)
        blank.comments[unit] = suppressions(unit.code)
        blank.left[unit] = left(unit.code)

    def decided(keeping: Mapping[LegacyObject, Message]) -> Plan:
        fresh = replace(blank, decisions=[], used_comments=set(), hints=[])
        return _decided(fresh, attempts, keeping)

    # first as optax has the optimizers, then with interfaces for the groups that stay
    plan = decided({})
    tried = may_keep_interface(plan) if options.selects("FO706") else {}
    if not tried:
        return plan
    keeping = decided(tried)
    # where some of them stay all the same, the others are tried without these
    stay = staying(keeping)
    groups = grouped(keeping)
    whole = {obj: why for obj, why in tried.items() if groups[obj] not in stay}
    if whole == tried:
        return keeping
    if not whole:
        return plan
    return decided(whole)


def _decided(
    plan: Plan, attempts: Attempts, keeping: Mapping[LegacyObject, Message]
) -> Plan:
    """Fill a plan with decisions; the objects of `keeping` keep the interface of definitions."""
    facts, options = plan.facts, plan.options
    context = Context(facts, options, keeping)
    for use in _in_order(facts, context.more_uses):
        decision = _decision(use, plan, attempts, context)
        if decision is not None and decision.status == "hint":
            plan.hints.append(decision)
        elif decision is not None:
            plan.decisions.append(decision)
    complete_groups(plan)
    leave_context(plan)
    keep_modules(plan)
    made = (
        (one.use.unit, one.use.node, one.edit)
        for one in plan.decisions
        if one.applies and one.edit is not None
    )
    plan.shared = shared(made, facts, options.form)
    plan.decisions += list(still_left(plan))
    return plan


def _decision(
    use: Use, plan: Plan, attempts: Attempts, context: Context
) -> Decision | None:
    """What is decided on a use; None if no rule is about it, or it stays without a message."""
    rule = rule_for(use)
    if rule is None or rule.decide is None:
        return None
    if _foreign_traversal(use, plan.facts):
        return None
    # optim.Adam(…) of a group that keeps the interface of its definitions
    stepping = context.stepping
    if stepping.with_interface and is_decided(use) and stepping.keeps_interface(use):
        rule = catalogue()["FO706"]
    try:
        decision = _with_outcome(use, rule, context)
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs this group alone
        decision = Decision(use, rule, None)
        decision.refuse(of_failure(Failure.of(error)))
        judge(decision, plan, attempts)
        return decision
    # jax.numpy.einsun
    if use.kind == UNKNOWN:
        return decision if _is_reported(decision, plan) else None
    # jax.tree_map, without `--modernize`
    if use.kind in MODERNIZED and not plan.options.modernize:
        decision.status = "hint"
        return decision
    is_kept = decision.edit is None and decision.refusal is None
    if is_kept and use.kind != "import":
        return None
    judge(decision, plan, attempts)
    return decision


def _foreign_traversal(use: Use, facts: Facts) -> bool:
    """Whether a `flax.traverse_util.ModelParamTraversal`, which still exists, has no optimizer."""
    # traversal.iterate(params)
    is_call = use.kind.startswith("traversal.")
    if not is_call and use.name != "ModelParamTraversal":
        return False
    if any(inner in use.objects for _, inner in facts.legacy.links):
        return False
    return is_call or not use.legacy_import


def _with_outcome(use: Use, rule: Rule, context: Context) -> Decision:
    """A decision with the outcome of its rule, and with the notes on it."""
    outcome = rule.decide(use, context) if rule.decide is not None else Keep()
    # what has no general form has no other either
    if not isinstance(outcome, Refusal):
        outcome = context.form(use, outcome)
    edit = outcome if isinstance(outcome, Edit) else None
    notes = context.notes.of(use)
    if isinstance(edit, ConvertDefinition) and edit.note:
        notes.append(edit.note)
    decision = Decision(use, rule, edit, note=joined(" ", notes))
    if isinstance(outcome, Refusal):
        decision.refuse(outcome)
    return decision


def _is_reported(decision: Decision, plan: Plan) -> bool:
    """Whether a name that may not exist is reported, as a hint, as `--modernize` asks for."""
    decision.status = "hint"
    return (
        not plan.is_suppressed(decision)
        and plan.options.modernize
        and plan.options.selects(decision.code)
    )


def _in_order(facts: Facts, more: list[Use]) -> list[Use]:
    """The uses of a project with some more, by files and lines."""
    if not more:
        return facts.uses
    files = {unit: number for number, unit in enumerate(facts.project.units)}

    def place(use: Use) -> tuple[int, tuple[int, int]]:
        line, column, _, _ = use.span
        return files[use.unit], (line, column)

    return sorted([*facts.uses, *more], key=place)
