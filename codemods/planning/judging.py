"""Why a use stays that its rule would change: comments, the selection, conflicts, weak evidence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from codemods.analysis.facts import Facts
from codemods.analysis.removed_names import MODERNIZED
from codemods.analysis.uses import Use
from codemods.containment import Failure
from codemods.messages import message
from codemods.model import File, Options, Refusal
from codemods.planning.decisions import Attempts, Decision, Plan
from codemods.rules import catalogue, reasons
from codemods.sources.modules import Unit
from codemods.sources.notebook import is_behind_magic

BY_HAND = "Change it by hand, then delete the comment above."
"""The remedy for what partial work has left."""


def judge(decision: Decision, plan: Plan, attempts: Attempts) -> None:
    """Refuse what a conflict, a comment, the selection or weak evidence forbids."""
    if plan.is_suppressed(decision):
        decision.refuse(
            Refusal(decision.rule.code, "Suppressed by a comment.", ""), "suppressed"
        )
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
    # jax.tree_map, which has to do with no optimizer
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
    # isinstance(state, optim.Optimizer), of which `state` may be a train state already
    if use.others and use.kind == "check":
        return reasons.conflict(
            "This tells optimizers from train states, and the optimizers become train states, too.",
            "Tell them apart by something else, such as a field or an argument.",
        )
    # model.target, of which `model` may be an optimizer or something else
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
    """The refusal of objects that may get to a file that is set aside."""
    file = facts.gets_beyond(use.objects)
    if file is None:
        return None
    return reasons.internal(
        message("It may get to {}, on which this tool fails.", File(file)),
        "Please report that file, with what `--verbose` prints.",
    )


def _not_valid(use: Use, attempts: Attempts) -> Refusal | None:
    """The refusal of what would give a file that is not valid Python, or a broken notebook."""
    # %timeit optimizer.apply_gradient(grads)
    lines = use.unit.code.split("\n") if use.unit.places else []
    if lines and is_behind_magic(lines[use.node.lineno - 1]):
        return reasons.statement_form(
            "This is the argument of a magic.",
            "Put it on a line of its own, below `%%time`.",
        )
    problem = attempts.problem(use)
    if problem is None:
        return None
    if problem.failure is not None:
        return of_failure(problem.failure)
    return reasons.failed(
        f"The rewritten file would not be valid: {problem.text}.", problem.remedy
    )


def of_failure(failure: Failure) -> Refusal:
    """The refusal of what this tool fails on."""
    refusal = reasons.internal(
        f"An error within this tool ({failure.summary}).",
        "Please report it, with what `--verbose` prints.",
    )
    return replace(refusal, traceback=failure.traceback)


def _unlikely(use: Use, plan: Plan) -> Refusal | None:
    """The refusal of what is only likely to be a legacy object."""
    if use.evidence != "likely" or plan.options.unsafe:
        return None
    why = (
        "Only its name or what is read of it suggests that this is a legacy optimizer."
    )
    # the step alone suggests it
    if use.kind == "optimizer.apply_gradient" and any(
        obj.node is use.node for obj in use.objects
    ):
        why = (
            "A class of this program has an `apply_gradient`, too, and nothing else shows "
            "that this is a legacy optimizer."
        )
    return reasons.likely(why, "Use `--unsafe` if it is one.")


def still_left(plan: Plan) -> Iterator[Decision]:
    """The remarks of partial work above statements that no other decision is about."""
    for unit, remarks in plan.left.items():
        if not remarks:
            continue
        decided = {_begins(decision.use.node, unit) for decision in plan.of(unit)}
        for statement in unit.nodes:
            if not isinstance(statement, ast.stmt):
                continue
            line = _begins(statement, unit)
            code, why = remarks.get(line, ("", ""))

            if code not in catalogue() or line in decided:
                continue
            use = Use("left", code, unit, statement, ())
            refusal = Refusal(code, why, BY_HAND)
            yield Decision(use, catalogue()[code], None, refusal, "unresolved")


def _begins(node: ast.AST, unit: Unit) -> int:
    """The first line of the statement that a node is in, or is; that of its first decorator."""
    around = (node, *unit.ancestors(node))
    statement = next(found for found in around if isinstance(found, ast.stmt))
    # @jax.jit, above `def step(optimizer)`
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    lines = [decorator.lineno for decorator in decorators]
    return min([statement.lineno, *lines])
