"""A definition that is used without an optimizer, as a gradient transformation is."""

from __future__ import annotations

import ast

from codemods.analysis.import_names import free_name
from codemods.analysis.legacy import Unnamed
from codemods.analysis.origins import is_path
from codemods.analysis.stepping import bare_step, new_rate
from codemods.analysis.uses import Use
from codemods.idioms.carried import typed
from codemods.inference.binding import arguments_of
from codemods.model import Refusal
from codemods.optimizers.base import Support
from codemods.optimizers.methods import INIT_STATE
from codemods.rewriting.edits import Edit, Replace, ReplaceStatement
from codemods.rules import reasons, rule
from codemods.rules.context import Context
from codemods.rules.hyper_params import keeps_rate, refuse_rate, with_rate
from codemods.sources.modules import Unit


@rule(
    "FO107",
    "init_state is init",
    "definition.init_state",
    before="state = optimizer_def.init_state(params)\n",
    after="state = optimizer_def.init(params)\n",
)
def init_state(use: Use, context: Context) -> Edit | Refusal:
    """This is the state of a transformation; it has no step of its own."""
    call = use.call
    if call is None or arguments_of(INIT_STATE, call) is None or call.keywords:
        return reasons.definition_internals(
            "`init_state` is not called with parameters alone.", "Call it so."
        )
    return Replace(use.span, "{owner}.init", (use.owner_hole,))


def makes_state(node: ast.expr, context: Context) -> bool:
    """Whether this is `definition.init_state(params)`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="init_state", value=owner)):
            return bool(context.facts.legacy_objects(owner, "definition"))
    return False


@rule(
    "FO108",
    "apply_gradient of a definition is update",
    "definition.apply_gradient",
    before=(
        "params, state = optimizer_def.apply_gradient(optimizer_def.hyper_params, params, state, "
        "grads)\n"
    ),
    after=(
        "updates, state = optimizer_def.update(grads, state, params)\n"
        "params = optax.apply_updates(params, updates)\n"
    ),
)
def apply_gradient(use: Use, context: Context) -> Edit | Refusal:
    """It returned new parameters and state. `update` returns what to add to the parameters. A
    learning rate among the hyperparameters is first set in the state.
    """
    given = bare_step(use.call)
    statement = use.unit.parents.get(use.call) if use.call is not None else None
    if given is None or not is_path(given["params"]):
        return _refuse(
            "This step does not get hyperparameters, named parameters, state and gradients as "
            "separate arguments."
        )
    rate = new_rate(given["hyper_params"])
    refusal = _refuse_hyper_params(given["hyper_params"], rate, use, context)
    if refusal is not None:
        return refusal
    updates = free_name(use.unit, "updates", "param_updates", "optax_updates")
    result = _result(statement, given["params"], updates, use.unit)
    if not isinstance(statement, ast.stmt) or result is None:
        return _refuse(
            "The result of this step is not returned, or unpacked into names of its own, in a "
            "statement of its own."
        )
    if not _is_own_state(given["state"], use, context):
        return _refuse_state()
    new_state, last = result
    update = (
        f"{updates}, {new_state} = {{owner}}.update({{grads}}, {{state}}, {{params}})"
    )
    holes = [use.owner_hole]
    holes += [
        (name, use.unit.span(given[name])) for name in ("params", "state", "grads")
    ]
    if rate is None:
        return ReplaceStatement(use.unit.span(statement), (update, last), tuple(holes))
    holes.append(("rate", use.unit.span(rate)))
    lines, supports = _with_rate_before((update, last), use, context)
    return ReplaceStatement(
        use.unit.span(statement), lines, tuple(holes), supports=supports
    )


def _refuse_hyper_params(
    hyper_params: ast.expr,
    rate: ast.expr | None,
    use: Use,
    context: Context,
) -> Refusal | None:
    """Why a step stays because of the hyperparameters that it is given, if it does."""
    # definition.apply_gradient(definition.hyper_params.replace(learning_rate=rate), …)
    if rate is not None:
        return refuse_rate(use, context)
    # definition.apply_gradient(definition.hyper_params, …)
    if not context.facts.legacy_objects(hyper_params, "hyper_params"):
        return _refuse(
            "The hyperparameters that this step is given are not shown to be those of its "
            "definition."
        )
    if not context.overrides.overridden.isdisjoint(use.objects):
        return keeps_rate("Set the learning rate here too.")
    return None


def _result(
    statement: ast.AST | None,
    old_params: ast.expr,
    updates: str,
    unit: Unit,
) -> tuple[str, str] | None:
    """The name of the new state, and the statement that makes or returns the new parameters."""
    match statement:
        # params, state = definition.apply_gradient(…)
        case ast.Assign(targets=[ast.Tuple(elts=[params, state])]):
            if _reads(state, (old_params, params), unit):
                return None
            new_params = unit.source(params)
            last = f"{new_params} = {{optax}}.apply_updates({{params}}, {updates})"
            return unit.source(state), last
        # return definition.apply_gradient(…)
        case ast.Return():
            new_state = free_name(unit, "new_state", "new_opt_state", "next_opt_state")
            return (
                new_state,
                f"return {{optax}}.apply_updates({{params}}, {updates}), {new_state}",
            )
    return None


def _is_own_state(node: ast.expr, use: Use, context: Context) -> bool:
    """Whether a state can only be one that `init_state` of the same definitions made."""
    states = context.facts.legacy_objects(node, "state")
    makers = {inner for outer, inner in context.facts.legacy.links if outer in states}
    return {obj.made_by for obj in states} == {Unnamed.DEFINITION} and makers <= {
        *use.objects
    }


def _with_rate_before(
    lines: tuple[str, ...],
    use: Use,
    context: Context,
) -> tuple[tuple[str, ...], tuple[Support, ...]]:
    """The statements of a step, behind one that sets the learning rate in the state."""
    state = free_name(use.unit, "opt_state", "optimizer_state", "state_with_rate")
    rated, filters = with_rate("{state}", "learning_rate={rate}", context)
    rated, types = typed(rated, "{state}", use, context.stepping)
    others = (line.replace("{state}", state) for line in lines)
    return (f"{state} = {rated}", *others), filters + types


def _reads(target: ast.expr, others: tuple[ast.expr, ...], unit: Unit) -> bool:
    """Whether expressions that are evaluated after an assignment read its target."""
    text = unit.source(target)
    for other in others:
        for part in ast.walk(other):
            if isinstance(part, ast.Name | ast.Attribute) and unit.source(part) == text:
                return True
    return False


def _refuse_state() -> Refusal:
    """Why a step stays whose state may be that of an optimizer, or of another definition."""
    return reasons.state(
        "The state that this step is given comes from elsewhere, in the layout of the legacy "
        "optimizer.",
        "Make it by `init_state` of the same definition, where that is in view.",
    )


def _refuse(why: str) -> Refusal:
    return reasons.statement_form(
        why, "Use `update` of the transformation and `optax.apply_updates` instead."
    )
