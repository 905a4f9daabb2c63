"""Constructors of optimizer definitions."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.analysis.legacy import is_unknown_class
from codemods.analysis.origins import statement_of
from codemods.analysis.uses import Use
from codemods.idioms.float_rates import FloatRates
from codemods.idioms.schedules import Schedules
from codemods.inference.binding import is_unpacked
from codemods.model import Refusal
from codemods.optimizers import composite, optimizers
from codemods.optimizers.arguments import (
    FROM_NUMBER,
    FROM_NUMBER_OR_NONE,
    PLACEHOLDER,
)
from codemods.optimizers.base import learning_rate
from codemods.rewriting.edits import ConvertDefinition, Edit, Keep
from codemods.rules import reasons, rule
from codemods.rules.classes import are_stepped, as_function
from codemods.rules.context import Context
from codemods.rules.notes import is_part
from codemods.rules.param_states import new_by_definition
from codemods.rules.same_arguments import alias_of_call
from codemods.rules.types import made_by_hand, named

SIMPLE = (ast.AnnAssign, ast.Assign, ast.AugAssign, ast.Expr, ast.Return)
"""Statements that a comment above is about as a whole."""


@rule(
    "FO102",
    "an optimizer definition becomes a gradient transformation",
    "definition",
    before="optimizer_def = optim.Adam(1e-3, weight_decay=1e-4)\n",
    after="optimizer_def = optax.adamw(1e-3, weight_decay=1e-4)\n",
)
def definition(use: Use, context: Context) -> Edit | Refusal:
    """Each of the twelve optimizers becomes the optax expression that was measured to be the same
    function: arguments are renamed and keep their text, and defaults that differ are made explicit.
    If optax has no equal form, a small gradient transformation is added to the project.

    The learning rate becomes an injected hyperparameter if each step sets it, or if no step is in
    view and the constructor gives none; everything else stays static. If the constructor gave no
    rate, it gets 0.0; above the first in a file, a comment says that each step has to set it.
    Unpacked arguments, as in `optim.Adam(**arguments)`, are
    unknown, so the call goes to a function that takes the legacy arguments, unless all their names
    are known and the same.
    """
    assert isinstance(use.node, ast.Call)
    if use.name not in optimizers():
        return _refuse_other(use)
    # optim.Adam(**arguments)
    if use.name not in composite() and is_unpacked(use.node):
        return as_function(use, context, alias_of_call(use, context))
    refusal = optimizers()[use.name].refuse(use.node)
    if refusal is None and use.name == "MultiOptimizer":
        refusal = refuse_traversals(use.node, context)
    if refusal is not None:
        return refusal
    conversion = ConvertDefinition(use.span, use.name, inject=False)
    # a MultiOptimizer has no numbers of its own
    if use.name in composite():
        return conversion
    if not context.stepping.decay_is_set.isdisjoint(use.objects):
        conversion = replace(conversion, sets_decay=True)
    scheduled = context.idioms[Schedules].of(use.objects)
    if scheduled is not None and use.node in scheduled.rates:
        return replace(conversion, rate=scheduled.rates[use.node])
    return _with_rate(conversion, use, context)


def _refuse_other(use: Use) -> Refusal:
    """Why a call of another class than those of the optimizers stays."""
    if use.name == "OptimizerDef":
        return reasons.custom_definition(
            "OptimizerDef is an abstract class.", "Remove the call."
        )
    if is_unknown_class(use.name):
        return reasons.run_time_class(
            f"`{use.name}` is none of the optimizers that `flax.optim` had last.",
            "Use an optimizer of optax.",
        )
    return made_by_hand(use)


def _with_rate(
    conversion: ConvertDefinition,
    use: Use,
    context: Context,
) -> Edit | Refusal:
    """A conversion that injects the learning rate if steps set it, or if there is none yet."""
    assert isinstance(use.node, ast.Call)
    is_set_by_steps = any(obj in context.overrides.injected for obj in use.objects)
    own = learning_rate(use.node)
    if own is not None:
        rates, as_float = context.facts.of(FloatRates), ""
        if is_set_by_steps and rates.needs_float(own, is_part(use, context.facts)):
            as_float = FROM_NUMBER_OR_NONE if rates.may_be_none(own) else FROM_NUMBER
        return replace(conversion, inject=is_set_by_steps, as_float=as_float)
    # optim.Adam()
    if not is_set_by_steps and are_stepped(use.objects, context):
        return reasons.no_learning_rate(
            f"`{use.name}` is made without a learning rate, and no step in view sets one.",
            "Give the constructor a learning rate.",
        )
    # where a comment has no room, a note says that 0.0 is a placeholder
    note = "" if _has_room(use) else PLACEHOLDER
    return replace(conversion, inject=True, note=note)


def _has_room(use: Use) -> bool:
    """Whether a comment above the statement around a use is about nothing else."""
    statement = statement_of(use.unit, use.node)
    line = use.unit.code.split("\n")[statement.lineno - 1].encode()
    # seed = 0; optimizer = optim.Adam().create(params)
    ahead = line[: statement.col_offset].strip()
    return isinstance(statement, SIMPLE) and not ahead


def refuse_traversals(call: ast.Call, context: Context) -> Refusal | None:
    """Why a MultiOptimizer stays, if a group is not chosen by a traversal in view."""
    groups = (
        context.facts.within(context.facts.flow.places.read(argument))
        for argument in call.args
    )
    if all(any(obj.kind == "traversal" for obj in group) for group in groups):
        return None
    return reasons.traversal(
        "Where a traversal of this MultiOptimizer comes from is not in view.",
        "Label the parameters for `optax.transforms.partition`.",
    )


@rule(
    "FO501",
    "DynamicScale has moved",
    *(
        f"{kind}:{name}"
        for kind in ("definition", "annotation", "check", "value")
        for name in ("DynamicScale", "DynamicScaleResult")
    ),
    before="dynamic_scale = optim.DynamicScale()\n",
    after="dynamic_scale = DynamicScale()\n",
)
def dynamic_scale(use: Use, context: Context) -> Edit | Refusal:
    """`flax.optim.DynamicScale` lives on, unchanged, as `flax.training.dynamic_scale.DynamicScale`.
    So does the class of its results, `DynamicScaleResult`.
    """
    return named(use, f"{{{use.name}}}")


@rule(
    "FO105",
    "internals of a definition",
    "definition.state_dict",
    "definition.restore_state",
    "definition.apply_param_gradient",
    "definition.init_param_state",
    "definition.init_state",
    "definition.apply_gradient",
    "definition.own",
)
def internals(use: Use, context: Context) -> Keep | Refusal:
    """Code that uses the internals of a definition stays, with a reason."""
    # optimizer.replace(state=optimizer.optimizer_def.init_state(params))
    if new_by_definition(use.call, use.unit, context) is not None:
        return Keep()
    return reasons.definition_internals(
        f"`.{use.name}` is asked of an optimizer definition; a gradient transformation has none, "
        "or another.",
        "Write a function of your own for what it does.",
    )
