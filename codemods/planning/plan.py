"""What becomes of every use: the decisions of the rules, made whole for each group.

A group is a set of things that migrate together, or stay together.
"""

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
from codemods.model import Location, Options, Refusal, Status
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
"""The remedy for what partial work has left."""


@dataclass
class Decision:
    """A use, the rule that decided on it, and the outcome: an edit, or a refusal.

    A suppression is a refusal, too. `cause` is the decision for the sake of which a use is refused
    that could migrate by itself. `note` says why the edit is a general form, where a person may
    have expected a shorter one.
    """

    use: Use
    rule: Rule
    edit: Edit | Keep | None
    refusal: Refusal | None = None
    status: Status = "rewritten"
    note: str = ""
    cause: Decision | None = None

    @property
    def code(self) -> str:
        if self.refusal is not None and self.status == "unresolved":
            return self.refusal.code
        return self.rule.code

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

    The groups that reach a file that failed are refused; those in plain files take their general
    forms. The optimizers that cannot migrate as optax has them keep the interface of their
    definitions, where that makes them whole.
    """
    blank = Plan(facts, options)
    for unit in facts.project.units:
        blank.names[unit] = names_for(unit, facts)
        blank.comments[unit], blank.left[unit] = suppressions(unit.code), left(unit.code)

    def decided(keeping: Mapping[Thing, str]) -> Plan:
        return _decided(
            replace(blank, decisions=[], used_comments=set(), hints=[]), attempts, keeping
        )

    # first as optax has the optimizers, then with interfaces for the groups that stay
    plan = decided({})
    tried = _may_keep_interface(plan) if options.selects("FO706") else {}
    context = Context(facts, options, attempts.plain, tried)
    tried = _without_hopeless(tried, plan, attempts, context)
    if not tried:
        return plan
    keeping = decided(tried)
    staying, groups = _staying(keeping), _grouped(keeping)
    whole = {thing: why for thing, why in tried.items() if groups[thing] not in staying}
    if whole == tried:
        return keeping
    return decided(whole) if whole else plan


def _staying(plan: Plan) -> set[Thing]:
    """The groups that stay: one site is refused, or no file can have the classes they need."""
    staying, groups = set(_refused_groups(plan)), _grouped(plan)
    for decision in plan.decisions:
        is_homeless = decision.use.unit in plan.shared.homeless
        if decision.applies and is_homeless and _has_helpers(decision):
            staying |= {groups[thing] for thing in decision.use.things}
    return staying


def _has_helpers(decision: Decision) -> bool:
    supports: tuple[Support, ...] = getattr(decision.edit, "supports", ())
    return any(support.is_shared for support in supports)


def _decided(plan: Plan, attempts: Attempts, keeping: Mapping[Thing, str]) -> Plan:
    """Fill a plan with decisions; the things of `keeping` keep the interface of definitions."""
    facts, options = plan.facts, plan.options
    context = Context(facts, options, attempts.plain, keeping)
    facts.legacy.links.update(dict.fromkeys(pairwise(context.viewed.together)))
    for use in _in_order(facts, context.more_uses):
        decision = _decision(use, plan, attempts, context)
        if decision is not None and decision.status == "hint":
            plan.hints.append(decision)
        elif decision is not None:
            plan.decisions.append(decision)
    _complete_groups(plan, next(iter(context.viewed.together), None))
    _keep_modules(plan)
    edits = (
        (decision.use.unit, decision.edit)
        for decision in plan.decisions
        if decision.applies and isinstance(decision.edit, Edit)
    )
    plan.shared = shared(edits, facts)
    plan.decisions += list(_still_left(plan))
    return plan


def _decision(use: Use, plan: Plan, attempts: Attempts, context: Context) -> Decision | None:
    """What is decided on a use; None if no rule is about it, or it stays without a message."""
    rule = rule_for(use)
    if rule is None or rule.decide is None or _foreign_traversal(use, plan.facts):
        return None
    # optim.Adam(…) of a group that keeps the interface of its definitions
    stepping = context.stepping
    if stepping.with_interface and is_decided(use) and stepping.keeps_interface(use):
        rule = catalogue()["FO706"]
    outcome = rule.decide(use, context) if rule.decide is not None else Keep()
    if not isinstance(outcome, Refusal):  # what has no general form has no other either
        outcome = context.form(use, outcome)
    decision = _with_outcome(use, rule, outcome, context)
    if use.kind == UNKNOWN:
        return decision if _is_reported(decision, plan) else None
    if use.kind in MODERNIZED and not plan.options.modernize:
        decision.status = "hint"
        return decision
    if isinstance(outcome, Keep) and use.kind != "import":
        return None
    _judge(decision, plan, attempts)
    return decision


def _with_outcome(
    use: Use, rule: Rule, outcome: Edit | Keep | Refusal, context: Context
) -> Decision:
    """A decision with the outcome of its rule, and with the notes on it."""
    own_note = outcome.note if isinstance(outcome, ConvertDefinition) else ""
    note = " ".join(filter(None, (context.notes.of(use), own_note)))
    if isinstance(outcome, Refusal):
        decision = Decision(use, rule, None, note=note)
        decision.refuse(outcome)
        return decision
    return Decision(use, rule, outcome, note=note)


def _is_reported(decision: Decision, plan: Plan) -> bool:
    """Whether a name that may not exist is reported, as a hint.

    It is with `--modernize`, unless a comment or the selection forbids it.
    """
    decision.status = "hint"
    comment = _suppressing(decision, plan.comments[decision.use.unit])
    if comment is not None:
        plan.used_comments.add((decision.use.unit, comment))
    return plan.options.modernize and comment is None and plan.options.selects(decision.code)


def _may_keep_interface(plan: Plan) -> dict[Thing, str]:
    """The things of groups that stay, but may migrate if definitions keep their interface.

    For each, the reason why they stay.
    """
    facts, groups = plan.facts, _grouped(plan)
    members: dict[Thing, list[Thing]] = defaultdict(list)
    for thing, group in groups.items():
        members[group].append(thing)
    # the decisions about things, then those about classes
    causes = _refused_groups(plan)
    for decision in plan.decisions:
        # a refused class of which no object is known: `class Mine(optim.Adam)`
        if not (decision.applies or decision.use.things) and interface_of(decision.use.name):
            program = facts.together(decision.use.unit)
            names = ("custom", decision.use.name)
            own = (thing for thing in groups if thing.name in names and thing.unit.path in program)
            causes |= {groups[thing]: decision for thing in own if groups[thing] not in causes}
    found: dict[Thing, str] = {}
    for group, cause in causes.items():
        if cause.status == "unresolved" and _can_keep_interface(members[group], facts):
            why = f"{_reason_of(cause).removesuffix('.')} ({cause.use.where})."
            found |= dict.fromkeys(members[group], why)
    return found


def _without_hopeless(
    tried: dict[Thing, str], plan: Plan, attempts: Attempts, context: Context
) -> dict[Thing, str]:
    """The things of groups that do not stay for a reason that an interface leaves as it is."""
    groups, uses = _grouped(plan), {*plan.facts.uses}
    hopeless: set[Thing] = set()
    for cause in plan.decisions:
        # optimizer == other cannot be rewritten, whatever becomes of the definition
        affected = {groups[thing] for thing in cause.use.things if thing in tried} - hopeless
        if not affected or cause.applies or cause.code == SIBLING:
            continue
        if cause.use in uses or cause.use.kind == "whole":
            again = _decision(cause.use, plan, attempts, context)
            if again is not None and not again.applies:
                hopeless |= affected
    return {thing: why for thing, why in tried.items() if groups[thing] not in hopeless}


def _reason_of(decision: Decision) -> str:
    assert decision.refusal is not None
    return decision.refusal.reason


def _refused_groups(plan: Plan) -> dict[Thing, Decision]:
    """The groups of which a site stays, each with the first that has a reason of its own."""
    groups = _grouped(plan)
    causes: dict[Thing, Decision] = {}
    for decision in plan.decisions:
        if not decision.applies and decision.code != SIBLING:
            for thing in decision.use.things:
                causes.setdefault(groups[thing], decision)
    return causes


def _can_keep_interface(members: list[Thing], facts: Facts) -> bool:
    """Whether all definitions of a group are made in view, by classes that have an interface."""
    definitions = [thing for thing in members if thing.kind == "definition"]
    # each optimizer that is created in view has to have known definitions
    optimizers = (
        thing for thing in members if thing.kind == "optimizer" and thing.evidence == "proven"
    )
    made = [one for one in definitions if one.evidence == "proven"]
    known = all(one.name in ("custom", RUN_TIME) or has_interface(one.name) for one in made)
    return bool(made) and known and all(map(facts.legacy.definitions, optimizers))


def first_sites(plan: Plan) -> dict[Thing, Location]:
    """For each thing where its group begins: where an optimizer is made, or else at a site.

    It is the first by path and line, so that it does not depend on the order of the files.
    """
    groups = _grouped(plan)
    made: dict[Thing, list[Location]] = defaultdict(list)
    for thing, group in groups.items():
        # optimizer = optim.Adam(1e-3).create(params)
        if thing.kind == "optimizer" and isinstance(thing.node, ast.Call):
            made[group].append(thing.unit.location(thing.node.lineno))
    used: dict[Thing, list[Location]] = defaultdict(list)
    for decision in plan.decisions:
        for thing in decision.use.things:
            used[groups[thing]].append(decision.use.location)
    first = {group: min(made[group] or locations) for group, locations in used.items()}
    return {thing: first[group] for thing, group in groups.items() if group in first}


def _grouped(plan: Plan) -> dict[Thing, Thing]:
    """The group of each thing: what changes for several of them at once changes for all or none."""
    together = (decision.use.things for decision in plan.decisions if len(decision.use.things) > 1)
    return unify([*plan.facts.groups.items(), *together])


def _in_order(facts: Facts, more: list[Use]) -> list[Use]:
    """The uses of a project with some more, by files and lines."""
    if not more:
        return facts.uses
    files = {unit: number for number, unit in enumerate(facts.project.units)}
    return sorted([*facts.uses, *more], key=lambda use: (files[use.unit], use.span[:2]))


def _foreign_traversal(use: Use, facts: Facts) -> bool:
    """Whether a `flax.traverse_util.ModelParamTraversal` has to do with no optimizer.

    It still exists.
    """
    if not (use.name == "ModelParamTraversal" or use.kind.startswith("traversal.")):
        return False
    linked = any(inner in use.things for _, inner in facts.legacy.links)
    return not linked and (use.kind.startswith("traversal.") or not use.legacy_import)


def _judge(decision: Decision, plan: Plan, attempts: Attempts) -> None:
    """Refuse what a conflict, a comment, the selection or weak evidence forbids."""
    use = decision.use
    comment = _suppressing(decision, plan.comments[use.unit])
    if comment is not None:
        plan.used_comments.add((use.unit, comment))
        decision.refuse(Refusal(decision.rule.code, "Suppressed by a comment.", ""), "suppressed")
    elif not plan.options.selects(decision.code):
        decision.refuse(Refusal(decision.rule.code, "Not selected.", ""), "suppressed")
    elif decision.applies:
        refusal = _forbidden(decision, plan, attempts)
        if refusal is not None:
            decision.refuse(refusal)


def _forbidden(decision: Decision, plan: Plan, attempts: Attempts) -> Refusal | None:
    """Why a use stays that its rule would change; None if nothing stands in the way."""
    use, names = decision.use, plan.names[decision.use.unit]
    refusal = (
        _left_before(use, plan)
        or _unproven(decision, plan.options)
        or _out_of_reach(use, plan.facts)
        or _not_valid(use, attempts)
    )
    if refusal is not None:
        return refusal
    if use.kind in MODERNIZED:
        if {"jax", "flax"} <= names.keys():
            return None
        return reasons.name_taken(
            "The name `jax` or `flax` means something else here.", "Rename it."
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
    return _unlikely(use, plan)


def _left_before(use: Use, plan: Plan) -> Refusal | None:
    """The refusal that an earlier partial run wrote above the statement of a use."""
    remarks = plan.left[use.unit]
    if not remarks:
        return None
    line = _begins(use.node, use.unit)
    return Refusal(*remarks[line], BY_HAND) if line in remarks else None


def _unproven(decision: Decision, options: Options) -> Refusal | None:
    """The refusal of an optimizer whose new form was not proven to be the same function."""
    unit, node = decision.use.unit, decision.use.node
    place = (unit.path, unit.line(node.lineno), unit.source(node))
    if decision.rule.code not in ("FO102", "FO706") or place not in options.unproven:
        return None
    return reasons.unproven(
        "The optax form of this optimizer was not proven to be the same function.",
        "Run `optim2optax parity` on this file to see why; please report it.",
    )


def _out_of_reach(use: Use, facts: Facts) -> Refusal | None:
    """The refusal of things that may get to a file that is not analysed."""
    file = facts.gets_beyond(use.things)
    if file is None:
        return None
    if file.nests:
        return reasons.nests(
            f"It may get to {file.path}, which nests too deeply to be analysed.",
            "Divide the longest expression there, and give its parts names.",
        )
    return reasons.beyond(
        f"It may get to {file.path}, which is beyond the budget of the analysis.",
        "Raise `--budget`, or give fewer files at once.",
    )


def _not_valid(use: Use, attempts: Attempts) -> Refusal | None:
    """The refusal of what would give a file that is not valid Python, or a broken notebook."""
    # %timeit optimizer.apply_gradient(grads)
    if use.unit.places and is_behind_magic(use.unit.code.split("\n")[use.node.lineno - 1]):
        return reasons.statement_form(
            "This is the argument of a magic.", "Put it on a line of its own, below `%%time`."
        )
    problem = attempts.problem(use)
    if problem is None:
        return None
    return reasons.failed(
        f"The rewritten file would not be valid: {problem}.", "Please report this file."
    )


def _unlikely(use: Use, plan: Plan) -> Refusal | None:
    """The refusal of what is only likely to be a legacy object."""
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
    return (
        "Nothing in view shows what this object is; "
        f"it may be the optimizer that goes out of view at {where}."
    )


def _begins(node: ast.AST, unit: Unit) -> int:
    """The first line of the statement that a node is in, or is; that of its first decorator."""
    around = (node, *unit.ancestors(node))
    statement = next(found for found in around if isinstance(found, ast.stmt))
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _still_left(plan: Plan) -> Iterator[Decision]:
    """The remarks of partial work above statements that no other decision is about."""
    for unit, remarks in plan.left.items():
        if not remarks:
            continue
        decided = {_begins(decision.use.node, unit) for decision in plan.of(unit)}
        for statement in (node for node in unit.nodes if isinstance(node, ast.stmt)):
            line = _begins(statement, unit)
            code, why = remarks.get(line, ("", ""))
            if code in catalogue() and line not in decided:
                use = Use("left", code, unit, statement, ())
                refusal = Refusal(code, why, BY_HAND)
                yield Decision(use, catalogue()[code], None, refusal, "unresolved")


def _suppressing(decision: Decision, comments: Iterable[Suppression]) -> Suppression | None:
    first, _, last, _ = decision.use.span
    inside = (comment for comment in comments if first <= comment.line <= last)
    codes = (decision.rule.code, decision.code)
    return next((comment for comment in inside if any(map(comment.covers, codes))), None)


def _complete_groups(plan: Plan, viewed: Thing | None) -> None:
    """Where one site of a group stays, all of it stays, unless the user asked for partial work.

    `viewed` is any of the states that keep their legacy form; what makes such states without an
    optimizer belongs to their group.
    """
    groups = _grouped(plan)
    # a suppressed site makes the others of its group stay, too
    causes: dict[Thing, Decision] = {}
    for decision in plan.decisions:
        if not decision.applies:
            for thing in _concerned(decision, viewed, plan.facts):
                causes.setdefault(groups[thing], decision)
    if plan.options.partial:
        return
    traces = Traces(plan.facts)
    for decision in plan.decisions:
        concerned = (groups[thing] for thing in _concerned(decision, viewed, plan.facts))
        cause = next((causes[group] for group in concerned if group in causes), None)
        # isinstance(x, optim.Adam): any optimizer of the program may be of the class
        if decision.use.kind in ("check", "value") and not decision.use.things:
            program = plan.facts.together(decision.use.unit)
            cause = next((one for one in causes.values() if one.use.unit.path in program), None)
        if cause is not None and decision.applies:
            decision.refuse(_because_of(cause, decision.use, traces.way(cause.use)))
            decision.cause = cause


def _keep_modules(plan: Plan) -> None:
    """Where a use of a removed module stays, its import `import a.b.c` stays with it."""
    # jax.experimental.maps.xmap(…)
    staying: dict[Unit, list[Decision]] = defaultdict(list)
    for decision in plan.decisions:
        if decision.use.kind == "removed" and not decision.applies:
            staying[decision.use.unit].append(decision)
    if not staying:
        return
    for decision in plan.decisions:
        use, row = decision.use, row_of(decision.use.name)
        is_import = use.kind in ("removed_module", "removed_import")
        is_module = is_import and isinstance(use.node, ast.Import)
        if not decision.applies or not is_module or row is None or _bound_as(use):
            continue
        # import jax.experimental.maps
        users = [one for one in staying[use.unit] if f"{one.use.name}.".startswith(f"{row.name}.")]
        if users:
            suppressed = all(one.status == "suppressed" for one in users)
            refusal = reasons.removed(
                f"`{row.name}` was removed, and is still in use here.", row.note
            )
            decision.refuse(refusal, "suppressed" if suppressed else "unresolved")


def _bound_as(use: Use) -> str | None:
    """The name that an import of a module gives it; None for `import a.b.c`, which binds `a`."""
    names = use.node.names if isinstance(use.node, ast.Import) else ()
    return next((one.asname for one in names if one.name == use.name), None)


def _concerned(decision: Decision, viewed: Thing | None, facts: Facts) -> Iterable[Thing]:
    """The things that a decision is about."""
    # definition.init_state(params), which makes a state without an optimizer
    if decision.rule.code in MAKING_STATES and not decision.use.things and viewed is not None:
        return (viewed,)
    # what a class makes that is used as a value may come back from out of view
    if decision.use.kind == "value" and not decision.applies:
        return (*decision.use.things, *facts.of_unknown_origin(decision.use.unit))
    return decision.use.things


def _because_of(cause: Decision, use: Use, way: Way | None) -> Refusal:
    """Why a use stays for the sake of another of its group; of the same place, its reason."""
    if cause.refusal is not None and cause.use.node is use.node:
        return cause.refusal
    where = cause.use.where
    if where == use.where:
        site = "Another use of the same optimizer on this line"
    elif way is not None:
        site = f"The same optimizer, created in {way.origin}, reaches {where}{way.through}, which"
    else:
        site = f"The same optimizer reaches {where}, which"
    if cause.status == "suppressed":
        return reasons.left_by_choice(
            f"{site} is suppressed or not selected.",
            "Include that site, or use `--partial`.",
        )
    assert cause.refusal is not None
    return reasons.sibling(
        f"{site} cannot be migrated ({cause.refusal.code}): {cause.refusal.reason}",
        f"Change {where} first, or use `--partial`.",
    )
