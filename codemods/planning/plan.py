"""What becomes of every use: the rules' decisions, made whole for each group of things that migrate together."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from codemods.analysis.facts import Facts, unify
from codemods.analysis.legacy import RUN_TIME
from codemods.analysis.names import Name, names_for
from codemods.analysis.removed_names import MODERNIZED, UNKNOWN
from codemods.analysis.trace import Traces, Way
from codemods.analysis.uses import Use
from codemods.flow.objects import Thing
from codemods.model import Options, Refusal, Status
from codemods.optimizers.base import Support
from codemods.optimizers.interface import has_interface, interface_of
from codemods.planning.attempts import Attempts
from codemods.planning.sharing import Shared, shared
from codemods.removed import row_of
from codemods.rewriting.edits import ConvertDefinition, Edit, Keep
from codemods.rules import Rule, catalogue, reasons, rule_for
from codemods.rules.context import Context
from codemods.rules.interface import is_decided
from codemods.sources.modules import Unit
from codemods.sources.notebook import is_behind_magic
from codemods.sources.suppression import Suppression, left, suppressions

MAKING_STATES = ("FO213", "FO703")
"""The rules for what makes a state, or a part of one."""

SIBLING = "FO901"
"""The reason of what stays because of another site of its group."""

BY_HAND = "Change it by hand, then delete the comment above."
"""What to do with what partial work has left."""


@dataclass
class Decision:
    """A use, the rule that decided on it, and the outcome: an edit, or a refusal (which a suppression also is).

    `note` says why the edit is a general form, where a person may have expected a shorter one.
    """

    use: Use
    rule: Rule
    edit: Edit | Keep | None
    refusal: Refusal | None = None
    status: Status = "rewritten"
    note: str = ""

    @property
    def code(self) -> str:
        return (
            self.refusal.code
            if self.refusal is not None and self.status == "unresolved"
            else self.rule.code
        )

    @property
    def applies(self) -> bool:
        return self.status == "rewritten"

    def refuse(self, refusal: Refusal, status: Status = "unresolved") -> None:
        self.refusal, self.status = refusal, status


@dataclass
class Plan:
    """All decisions, and for each file the names that its new code will use."""

    facts: Facts
    options: Options
    decisions: list[Decision] = field(default_factory=list)
    names: dict[Unit, dict[str, Name]] = field(default_factory=dict)
    comments: dict[Unit, tuple[Suppression, ...]] = field(default_factory=dict)
    left: dict[Unit, Mapping[int, tuple[str, str]]] = field(default_factory=dict)
    used_comments: set[tuple[Unit, Suppression]] = field(default_factory=set)
    hints: list[Decision] = field(default_factory=list)
    shared: Shared = field(default_factory=Shared)

    def of(self, unit: Unit) -> list[Decision]:
        return [decision for decision in self.decisions if decision.use.unit is unit]


def make_plan(facts: Facts, options: Options, attempts: Attempts) -> Plan:
    """Decide on every use.

    The groups that reach a file that failed are refused; those in plain files take their general forms. The optimizers that
    cannot migrate as optax has them keep the interface of their definitions, where that makes them whole.
    """
    plan = Plan(facts, options)
    for unit in facts.project.units:
        plan.names[unit] = names_for(unit, facts)
        plan.comments[unit], plan.left[unit] = suppressions(unit.code), left(unit.code)

    def decided(kept: Mapping[Thing, str]) -> Plan:
        return _decided(replace(plan, decisions=[], used_comments=set(), hints=[]), attempts, kept)

    plan = decided({})
    tried = _may_keep_interface(plan) if options.selects("FO706") else {}
    tried = _without_hopeless(tried, plan, attempts, Context(facts, options, attempts.plain, tried))
    if not tried:
        return plan
    kept = decided(tried)
    staying, groups = set(_refused_groups(kept)), _grouped(kept)
    for decision in kept.decisions:
        if (
            decision.applies
            and decision.use.unit in kept.shared.homeless
            and _has_helpers(decision)
        ):
            staying |= {groups[thing] for thing in decision.use.things}
    whole = {thing: why for thing, why in tried.items() if groups[thing] not in staying}
    if whole == tried:
        return kept
    return decided(whole) if whole else plan


def _has_helpers(decision: Decision) -> bool:
    supports: tuple[Support, ...] = getattr(decision.edit, "supports", ())
    return any(support.is_shared for support in supports)


def _decided(plan: Plan, attempts: Attempts, kept: Mapping[Thing, str]) -> Plan:
    """A plan, filled with decisions by which the things of `kept` keep the interface of their definitions."""
    facts, options = plan.facts, plan.options
    context = Context(facts, options, attempts.plain, kept)
    facts.legacy.links.update(dict.fromkeys(pairwise(context.viewed_together)))
    for use in _in_order(facts, context.more_uses):
        decision = _decision(use, plan, attempts, context)
        if decision is not None and decision.status == "hint":
            plan.hints.append(decision)
        elif decision is not None:
            plan.decisions.append(decision)
    _complete_groups(plan, next(iter(context.viewed_together), None))
    _keep_modules(plan)
    applied = [decision for decision in plan.decisions if decision.applies]
    edits = (
        (decision.use.unit, decision.edit)
        for decision in applied
        if isinstance(decision.edit, Edit)
    )
    plan.shared = shared(edits, facts)
    plan.decisions += list(_still_left(plan))
    return plan


def _decision(use: Use, plan: Plan, attempts: Attempts, context: Context) -> Decision | None:
    """What is decided on one use; None if no rule is about it, or leaves it as it is without a word."""
    found = rule_for(use)
    if found is None or found.decide is None or _foreign_traversal(use, plan.facts):
        return None
    if context.with_interface and is_decided(use) and context.keeps_interface(use):
        found = catalogue()["FO706"]
    outcome = found.decide(use, context) if found.decide is not None else Keep()
    if not isinstance(outcome, Refusal):  # what has no general form has no other either
        outcome = _within_idiom(use, context) or outcome
    said = outcome.note if isinstance(outcome, ConvertDefinition) else ""
    note = " ".join(filter(None, (context.note(use), said)))
    decision = Decision(use, found, None if isinstance(outcome, Refusal) else outcome, note=note)
    if isinstance(outcome, Refusal):
        decision.refuse(outcome)
    if use.kind == UNKNOWN:
        return decision if _is_told(decision, plan) else None
    if use.kind in MODERNIZED and not plan.options.modernize:
        decision.status = "hint"
        return decision
    if isinstance(outcome, Keep) and use.kind != "import":
        return None
    _judge(decision, plan, attempts)
    return decision


def _is_told(decision: Decision, plan: Plan) -> bool:
    """Whether a name that may not be there is told, as a hint: with `--modernize`, unless a comment or the selection forbids."""
    decision.status = "hint"
    comment = _suppressing(decision, plan.comments[decision.use.unit])
    if comment is not None:
        plan.used_comments.add((decision.use.unit, comment))
    return plan.options.modernize and comment is None and plan.options.selects(decision.code)


def _may_keep_interface(plan: Plan) -> dict[Thing, str]:
    """The things of groups that stay, and may not if their definitions keep their interface: for each, why they stay."""
    facts, groups = plan.facts, _grouped(plan)
    members: dict[Thing, list[Thing]] = defaultdict(list)
    for thing, group in groups.items():
        members[group].append(thing)
    causes = _refused_groups(plan)
    for decision in plan.decisions:
        if not (decision.applies or decision.use.things) and interface_of(decision.use.name):
            program = facts.together(decision.use.unit)
            names = ("custom", decision.use.name)
            own = (thing for thing in groups if thing.name in names and thing.unit.path in program)
            causes |= {groups[thing]: decision for thing in own if groups[thing] not in causes}
    return {
        thing: f"{_reason_of(cause).removesuffix('.')} ({cause.use.where})."
        for group, cause in causes.items()
        if cause.status == "unresolved" and _can_keep_interface(members[group], facts)
        for thing in members[group]
    }


def _without_hopeless(
    tried: dict[Thing, str], plan: Plan, attempts: Attempts, context: Context
) -> dict[Thing, str]:
    """The things of groups that do not stay for a reason that is one as well if definitions keep their interface."""
    groups, uses = _grouped(plan), {*plan.facts.uses}
    hopeless: set[Thing] = set()
    for cause in plan.decisions:
        met = {groups[thing] for thing in cause.use.things if thing in tried} - hopeless
        if (
            met
            and not cause.applies
            and cause.code != SIBLING
            and (cause.use in uses or cause.use.kind == "whole")
        ):
            again = _decision(cause.use, plan, attempts, context)
            if again is not None and not again.applies:
                hopeless |= met
    return {thing: why for thing, why in tried.items() if groups[thing] not in hopeless}


def _reason_of(decision: Decision) -> str:
    assert decision.refusal is not None
    return decision.refusal.reason


def _refused_groups(plan: Plan) -> dict[Thing, Decision]:
    """The groups of which a site stays, each with the first that is a reason by itself."""
    groups = _grouped(plan)
    causes: dict[Thing, Decision] = {}
    for decision in plan.decisions:
        if not decision.applies and decision.code != SIBLING:
            for thing in decision.use.things:
                causes.setdefault(groups[thing], decision)
    return causes


def _can_keep_interface(members: list[Thing], facts: Facts) -> bool:
    """Whether all definitions of a group are made in view, and by classes for which there is one that keeps the interface."""
    definitions = [thing for thing in members if thing.kind == "definition"]
    optimizers = (
        thing for thing in members if thing.kind == "optimizer" and thing.evidence == "proven"
    )
    made = [one for one in definitions if one.evidence == "proven"]
    known = all(one.name in ("custom", RUN_TIME) or has_interface(one.name) for one in made)
    return bool(made) and known and all(map(facts.legacy.definitions, optimizers))


def _grouped(plan: Plan) -> dict[Thing, Thing]:
    """The group of each thing. What changes for several optimizers at once is done for all of them or for none."""
    together = (decision.use.things for decision in plan.decisions if len(decision.use.things) > 1)
    return unify([*plan.facts.groups.items(), *together])


def _within_idiom(use: Use, context: Context) -> Edit | Keep | None:
    """What becomes of the use of an optimizer whose dataclass is a train state itself, or which is in parts; None for others."""
    for outcomes in (context.own_states.outcomes, context.functional.outcomes):
        if use.node in outcomes:
            return outcomes[use.node] or Keep()
    return None


def _in_order(facts: Facts, more: list[Use]) -> list[Use]:
    """The uses of a project with some more, by files and lines."""
    if not more:
        return facts.uses
    files = {unit: number for number, unit in enumerate(facts.project.units)}
    return sorted([*facts.uses, *more], key=lambda use: (files[use.unit], use.span[:2]))


def _foreign_traversal(use: Use, facts: Facts) -> bool:
    """A `flax.traverse_util.ModelParamTraversal` outside of any optimizer is alive and none of our business."""
    if not (use.name == "ModelParamTraversal" or use.kind.startswith("traversal.")):
        return False
    linked = any(inner in use.things for _, inner in facts.legacy.links)
    return not linked and (use.kind.startswith("traversal.") or not use.legacy_import)


def _judge(decision: Decision, plan: Plan, attempts: Attempts) -> None:
    """Refuse what the rule allowed but something else forbids: a conflict, a comment, the selection, weak evidence."""
    use = decision.use
    comment = _suppressing(decision, plan.comments[use.unit])
    if comment is not None:
        plan.used_comments.add((use.unit, comment))
        decision.refuse(Refusal(decision.rule.code, "Suppressed by a comment.", ""), "suppressed")
    elif not plan.options.selects(decision.code):
        decision.refuse(Refusal(decision.rule.code, "Not selected.", ""), "suppressed")
    elif not decision.applies:
        return
    elif (refusal := _forbidden(decision, plan, attempts)) is not None:
        decision.refuse(refusal)


def _forbidden(decision: Decision, plan: Plan, attempts: Attempts) -> Refusal | None:
    """Why a use stays that its rule would change; None if nothing stands in the way."""
    use, names, unproven = decision.use, plan.names[decision.use.unit], plan.options.unproven
    place = (use.unit.path, use.unit.line(use.node.lineno), use.unit.source(use.node))
    if plan.left[use.unit] and (begins := _begins(use.node, use.unit)) in plan.left[use.unit]:
        return Refusal(*plan.left[use.unit][begins], BY_HAND)
    if decision.rule.code in ("FO102", "FO706") and place in unproven:
        return reasons.unproven(
            "The optax form of this optimizer was not proven to be the same function.",
            "Run `optim2optax parity` on this file to see why; please report it.",
        )
    file = plan.facts.gets_beyond(use.things)
    if file is not None and file.nests:
        return reasons.nests(
            f"It may get to {file.path}, which nests too deeply to be analysed.",
            "Divide the longest expression there, and give its parts names.",
        )
    if file is not None:
        return reasons.beyond(
            f"It may get to {file.path}, which is beyond the budget of the analysis.",
            "Raise `--budget`, or give fewer files at once.",
        )
    if use.unit.places and is_behind_magic(use.unit.code.split("\n")[use.node.lineno - 1]):
        return reasons.statement_form(
            "This is the argument of a magic.", "Put it on a line of its own, below `%%time`."
        )
    problem = attempts.problem(use)
    if problem is not None:
        return reasons.failed(
            f"The rewritten file would not be valid: {problem}.", "Please report this file."
        )
    if use.kind in MODERNIZED:
        taken = not {"jax", "flax"} <= names.keys()
        return (
            reasons.name_taken("The name `jax` or `flax` means something else here.", "Rename it.")
            if taken
            else None
        )
    if not {"optax", "TrainState"} <= names.keys():
        return reasons.name_taken(
            "The name `optax` means something else in this file.", "Rename it."
        )
    if use.others:
        return reasons.conflict(
            f"Something that is no legacy optimizer reaches `.{use.name}` here too.",
            "Use different names for the two, or migrate this place by hand.",
        )
    if use.evidence != "likely" or plan.options.unsafe:
        return None
    if any(thing in plan.facts.suspected for thing in use.things):
        remedy = "Annotate it: as `optim.Optimizer` if it is one, else as what it is."
        return reasons.suspected(_doubt(use, plan.facts), remedy)
    return reasons.likely(
        "Nothing shows that this is a legacy optimizer but its name.",
        "Use `--unsafe` if it is one.",
    )


def _doubt(use: Use, facts: Facts) -> str:
    escapes = (facts.suspected.get(thing) for thing in use.things)
    escape = next((found for found in escapes if found is not None), None)
    if escape is None:
        return "Nothing in view shows what this object is; it may be an optimizer of this program."
    where = escape.unit.place(escape.node.lineno)
    return f"Nothing in view shows what this object is; it may be the optimizer that goes out of view at {where}."


def _begins(node: ast.AST, unit: Unit) -> int:
    """The line in which the statement begins that has a node, or is it."""
    own = next(found for found in (node, *unit.ancestors(node)) if isinstance(found, ast.stmt))
    decorators: list[ast.expr] = getattr(own, "decorator_list", [])
    return min([own.lineno, *(decorator.lineno for decorator in decorators)])


def _still_left(plan: Plan) -> Iterator[Decision]:
    """What partial work has left above statements of which nothing else is told any more."""
    for unit in (unit for unit, remarks in plan.left.items() if remarks):
        told = {_begins(decision.use.node, unit) for decision in plan.of(unit)}
        for statement in (node for node in unit.nodes if isinstance(node, ast.stmt)):
            line = _begins(statement, unit)
            code, why = plan.left[unit].get(line, ("", ""))
            if code in catalogue() and line not in told:
                use = Use("left", code, unit, statement, ())
                yield Decision(
                    use, catalogue()[code], None, Refusal(code, why, BY_HAND), "unresolved"
                )


def _suppressing(decision: Decision, comments: Iterable[Suppression]) -> Suppression | None:
    first, _, last, _ = decision.use.span
    inside = (comment for comment in comments if first <= comment.line <= last)
    codes = (decision.rule.code, decision.code)
    return next((comment for comment in inside if any(map(comment.covers, codes))), None)


def _complete_groups(plan: Plan, viewed: Thing | None) -> None:
    """Where one site of a group stays, all of it stays, unless the user asked for partial work.

    `viewed` is any of the states that keep their legacy form; what makes such states without an optimizer belongs to their group.
    """
    group = _grouped(plan)
    causes: dict[Thing, Decision] = {}
    for decision in plan.decisions:
        if not decision.applies:
            for thing in _concerned(decision, viewed, plan.facts):
                causes.setdefault(group[thing], decision)
    if plan.options.partial:
        return
    traces = Traces(plan.facts)
    for decision in plan.decisions:
        concerned = _concerned(decision, viewed, plan.facts)
        cause = next((causes[group[thing]] for thing in concerned if group[thing] in causes), None)
        if (
            decision.use.kind in ("check", "value") and not decision.use.things
        ):  # any optimizer may be of the class
            program = plan.facts.together(decision.use.unit)
            cause = next((one for one in causes.values() if one.use.unit.path in program), None)
        if cause is not None and decision.applies:
            decision.refuse(_because_of(cause, traces.way(cause.use)))


def _keep_modules(plan: Plan) -> None:
    """Where something of a removed module stays, its import, as in `import a.b.c`, stays with it."""
    staying: dict[Unit, list[Decision]] = defaultdict(list)
    for decision in plan.decisions:
        if decision.use.kind == "removed" and not decision.applies:
            staying[decision.use.unit].append(decision)
    for decision in plan.decisions if staying else ():
        use, row = decision.use, row_of(decision.use.name)
        is_module = use.kind in ("removed_module", "removed_import") and isinstance(
            use.node, ast.Import
        )
        if decision.applies and is_module and row is not None and not _bound_as(use):
            users = [
                one for one in staying[use.unit] if f"{one.use.name}.".startswith(f"{row.name}.")
            ]
            if users:
                suppressed = all(one.status == "suppressed" for one in users)
                decision.refuse(
                    reasons.removed(
                        f"`{row.name}` was removed, and is still in use here.", row.note
                    ),
                    "suppressed" if suppressed else "unresolved",
                )


def _bound_as(use: Use) -> str | None:
    """The name that an import of a module gives it; None for `import a.b.c`, which binds `a`."""
    names = use.node.names if isinstance(use.node, ast.Import) else ()
    return next((one.asname for one in names if one.name == use.name), None)


def _concerned(decision: Decision, viewed: Thing | None, facts: Facts) -> Iterable[Thing]:
    """The things that a decision is about."""
    if decision.rule.code in MAKING_STATES and not decision.use.things and viewed is not None:
        return (viewed,)
    if (
        decision.use.kind == "value" and not decision.applies
    ):  # what the class makes may come back from out of view
        return (*decision.use.things, *facts.of_unknown_origin(decision.use.unit))
    return decision.use.things


def _because_of(cause: Decision, way: Way | None) -> Refusal:
    where = cause.use.where
    reached = f"The same optimizer reaches {where}"
    if way is not None:
        reached = f"The same optimizer, created in {way.origin}, reaches {where}{way.through}"
    if cause.status == "suppressed":
        return reasons.left_by_choice(
            f"{reached}, which is suppressed or not selected.",
            "Include that site, or use `--partial`.",
        )
    assert cause.refusal is not None
    return reasons.sibling(
        f"{reached}, which cannot be migrated ({cause.refusal.code}): {cause.refusal.reason}",
        f"Change {where} first, or use `--partial`.",
    )
