"""Groups are migrated, or left, as a whole: what stays for the sake of another site."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import replace

from codemods.analysis.facts import Facts, unify
from codemods.analysis.trace import Traces, Way
from codemods.analysis.uses import Use
from codemods.inference.objects import LegacyObject
from codemods.messages import joined, message
from codemods.model import File, Location, Message, Prose, Refusal
from codemods.planning.decisions import Decision, Plan
from codemods.removed import row_of
from codemods.rules import reasons
from codemods.sources.modules import Unit

SIBLING = "FO901"
"""The reason of what stays because of another site of its group."""

UNNAMED = "FO931"
"""The reason of what stays because files were not named."""

Groups = Mapping[LegacyObject, LegacyObject]
Causes = MutableMapping[LegacyObject, Decision]
"""The groups that stay, each with the site for the sake of which it does."""

CLASSES = ("check", "value")
"""The kinds of uses of a class, which may be about any optimizer of a program."""

CREATING = ("definition", "definition.create")
"""The kinds of uses that make an optimizer, or its definition."""

Places = dict[LegacyObject, list[Location]]


def grouped(plan: Plan) -> dict[LegacyObject, LegacyObject]:
    """The group of each object: what changes several of them changes all or none."""
    facts = plan.facts
    # what became known since the uses were found is linked, too
    together = (decision.use.objects for decision in plan.decisions)
    return unify([*facts.groups.items(), *facts.legacy.links, *together])


def refused_groups(
    plan: Plan, decisions: Iterable[Decision] | None = None
) -> dict[LegacyObject, Decision]:
    """The groups of which a site stays, of some decisions or of all, each with the first reason."""
    groups = grouped(plan)
    causes: dict[LegacyObject, Decision] = {}
    for decision in plan.decisions if decisions is None else decisions:
        if decision.applies or decision.code == SIBLING:
            continue
        for obj in decision.use.objects:
            causes.setdefault(groups[obj], decision)
    return causes


def first_sites(plan: Plan) -> dict[LegacyObject, Location]:
    """For each object where its group begins: where an optimizer is made, or else at a site.

    It is the first by path and line, so that it does not depend on the order of the files.
    """
    groups = grouped(plan)
    made: Places = defaultdict(list)
    for obj, group in groups.items():
        node = obj.node
        # optimizer = optim.Adam(1e-3).create(params)
        if obj.kind == "optimizer" and isinstance(node, ast.Call):
            made[group].append(obj.unit.location(node.lineno))
    used: Places = defaultdict(list)
    for decision in plan.decisions:
        use = decision.use
        for obj in use.objects:
            used[groups[obj]].append(use.location)
    first: dict[LegacyObject, Location] = {}
    for group, locations in used.items():
        first[group] = min(made[group] or locations)
    return {obj: first[group] for obj, group in groups.items() if group in first}


def complete_groups(plan: Plan) -> None:
    """Where one site of a group stays, all of it stays, unless the user asked for partial work.

    Where one is in a file that is only context, all of it stays in any case.
    """
    groups = grouped(plan)
    # a suppressed site makes the others of its group stay, too
    causes: dict[LegacyObject, Decision] = {}
    for decision in plan.decisions:
        # what a comment keeps as it is makes a legacy optimizer, with or without `--partial`
        is_kept = decision.use.kind in CREATING and plan.is_suppressed(decision)
        if decision.applies or (plan.options.partial and not is_kept):
            continue
        for obj in _concerned(decision, plan.facts):
            causes.setdefault(groups[obj], decision)
    _leave_unnamed(plan, groups, causes)
    traces = Traces(plan.facts)
    # the report has no files that are only context: there, the first site that waits stands for it
    standing: dict[Decision, Decision] = {}
    for decision in plan.decisions:
        use = decision.use
        concerned = (groups[obj] for obj in _concerned(decision, plan.facts))
        cause = next((causes[group] for group in concerned if group in causes), None)
        # isinstance(x, optim.Adam): any optimizer of the program may be of the class
        if use.kind in CLASSES and not use.objects:
            program = plan.facts.together(use.unit)
            near = (one for one in causes.values() if one.use.unit.path in program)
            cause = next(near, None)
        if cause is not None and decision.applies:
            way = traces.way(cause.use)
            made = _made(use, plan.facts)
            is_same = any(obj.node in made for obj in cause.use.objects)
            decision.refuse(_because_of(cause, use, way, is_same))
            told = cause
            if use.unit.writable and not cause.use.unit.writable:
                told = standing.setdefault(cause, decision)
            decision.cause = None if told is decision else told


def _leave_unnamed(plan: Plan, groups: Groups, causes: Causes) -> None:
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
        if decision.refusal is not None:
            # it cannot migrate before these files are writable, too
            decision.refusal = replace(decision.refusal, related=paths)
        elif decision.applies and group not in told:
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


def _concerned(decision: Decision, facts: Facts) -> Iterable[LegacyObject]:
    """The objects that a decision is about."""
    use = decision.use
    if decision.applies or use.kind not in ("value", "module", "in_text"):
        return use.objects
    # what a class makes that is a value may come back from out of view
    return (*use.objects, *facts.of_unknown_origin(use.unit))


def _made(use: Use, facts: Facts) -> set[ast.AST]:
    """The calls that make the objects at a use, and what these are made of or become."""
    own = {*use.objects}
    pairs = (pair for pair in facts.legacy.links if not own.isdisjoint(pair))
    return {obj.node for obj in own.union(*pairs)}


def _because_of(cause: Decision, use: Use, way: Way | None, is_same: bool) -> Refusal:
    """Why a use stays for the sake of another of its group; of the same place, its reason.

    `is_same` says that one optimizer reaches both, and not two that meet elsewhere.
    """
    if cause.refusal is not None and cause.use.node is use.node:
        return cause.refusal
    where = cause.use.location
    which = "The same optimizer" if is_same else "An optimizer of the same group"
    # optimizer.apply_gradient(grads), optimizer.state.step
    if where == use.location:
        site = message("Another use of the same optimizer on this line")
    elif use.kind in CLASSES and not use.objects:
        site = message("This may be about the optimizer at {}, which", where)
    elif way is not None:
        created = f"{which}, created in {{}}, reaches {{}}{{}}, which"
        site = message(created, way.origin, where, way.through)
    else:
        site = message(f"{which} reaches {{}}, which", where)
    if cause.status == "suppressed":
        is_made = cause.use.kind in CREATING
        return reasons.left_by_choice(
            message("{} is suppressed or not selected.", site),
            f"Include that site{'' if is_made else ', or use `--partial`'}.",
        )
    refusal = cause.refusal
    assert refusal is not None
    remedy: Prose = message("Change {} first, or use `--partial`.", where)
    # that site migrates as soon as other files are named
    if refusal.related:
        remedy = refusal.remedy
    elif not cause.use.unit.writable:
        remedy = message("Change {} first.", where)
    why = message("{} cannot be migrated ({}): {}", site, refusal.code, refusal.reason)
    return replace(reasons.sibling(why, remedy), related=refusal.related)


def keep_modules(plan: Plan) -> None:
    """Where a use of a removed module stays, its import `import a.b.c` stays with it."""
    # jax.experimental.maps.xmap(…)
    staying: dict[Unit, list[Decision]] = defaultdict(list)
    for decision in plan.decisions:
        if decision.use.kind == "removed" and not decision.applies:
            staying[decision.use.unit].append(decision)
    if not staying:
        return
    for decision in plan.decisions:
        use = decision.use
        row = row_of(use.name)
        is_import = use.kind in ("removed_module", "removed_import")
        aliases = use.node.names if isinstance(use.node, ast.Import) else []
        # import a.b.c, which binds `a`
        is_dotted = any(one.name == use.name and not one.asname for one in aliases)
        if row is None or not (decision.applies and is_import and is_dotted):
            continue
        # import jax.experimental.maps
        module = f"{row.name}."
        left = staying[use.unit]
        users = [one for one in left if f"{one.use.name}.".startswith(module)]
        if users:
            is_suppressed = all(one.status == "suppressed" for one in users)
            refusal = reasons.removed(
                f"`{row.name}` was removed, and is still in use here.", row.note
            )
            decision.refuse(refusal, "suppressed" if is_suppressed else "unresolved")
