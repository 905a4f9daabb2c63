"""A definition that is used without an optimizer, as a gradient transformation is."""

from __future__ import annotations

import ast

from codemods.analysis.carried import typed
from codemods.analysis.legacy import BARE
from codemods.analysis.stepping import bare_step, new_rate
from codemods.analysis.uses import Use
from codemods.flow.binding import arguments_of
from codemods.model import Refusal
from codemods.optimizers.base import Support
from codemods.optimizers.methods import INIT_STATE
from codemods.rewriting.edits import Edit, Replace, ReplaceStatement
from codemods.rules import reasons, rule
from codemods.rules.context import Context, free_name, is_path
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
    """The state of a transformation; it has no step of its own."""
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
            return bool(context.facts.things(owner, "definition"))
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
    """It returned new parameters and state. `update` returns what is to be added to the parameters.
    A learning rate among the hyperparameters is set in the state before.
    """
    given = bare_step(use.call)
    statement = use.unit.parents.get(use.call) if use.call is not None else None
    if given is None or not is_path(given["params"]):
        return _refuse()
    rate = new_rate(given["hyper_params"])
    if rate is None and not context.facts.things(given["hyper_params"], "hyper_params"):
        return _refuse()
    if rate is not None and (refusal := refuse_rate(use, context)) is not None:
        return refusal
    if rate is None and not context.overrides.overridden.isdisjoint(use.things):
        return keeps_rate("Set the learning rate here too.")
    updates = free_name(use.unit, "updates", "param_updates", "optax_updates")
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=[params, state])]):
            new_params, new_state = use.unit.source(params), use.unit.source(state)
            if _reads(state, (given["params"], params), use.unit):
                return _refuse()
            last = f"{new_params} = {{optax}}.apply_updates({{params}}, {updates})"
        case ast.Return():
            new_state = free_name(use.unit, "new_state", "new_opt_state", "next_opt_state")
            last = f"return {{optax}}.apply_updates({{params}}, {updates}), {new_state}"
        case _:
            return _refuse()
    states = context.facts.things(given["state"], "state")
    makers = [inner for outer, inner in context.facts.legacy.links if outer in states]
    if {thing.name for thing in states} != {BARE} or not set(makers) <= set(use.things):
        return reasons.state(
            "The state that this step is given comes from elsewhere, in the layout of the legacy "
            "optimizer.",
            "Make it by `init_state` of the same definition, where that is in view.",
        )
    holes = [use.owner_hole]
    holes += [(name, use.unit.span(given[name])) for name in ("params", "state", "grads")]
    lines: tuple[str, ...] = (
        f"{updates}, {new_state} = {{owner}}.update({{grads}}, {{state}}, {{params}})",
        last,
    )
    supports: tuple[Support, ...] = ()
    if rate is not None:
        holes.append(("rate", use.unit.span(rate)))
        named = free_name(use.unit, "opt_state", "optimizer_state", "state_with_rate")
        rated, filters = with_rate("{state}", "learning_rate={rate}", context)
        rated, types = typed(rated, "{state}", use, context, context.parameters)
        supports = filters + types
        lines = (f"{named} = {rated}", *(line.replace("{state}", named) for line in lines))
    return ReplaceStatement(use.unit.span(statement), lines, tuple(holes), supports=supports)


def _reads(target: ast.expr, others: tuple[ast.expr, ...], unit: Unit) -> bool:
    """Whether expressions that are evaluated behind the assignment to a target read that target."""
    parts = (
        part
        for other in others
        for part in ast.walk(other)
        if isinstance(part, ast.Name | ast.Attribute)
    )
    return unit.source(target) in map(unit.source, parts)


def _refuse() -> Refusal:
    return reasons.statement_form(
        "The result of this step is not unpacked or returned in a statement of its own, or what it "
        "is given is not plain to see.",
        "Use `update` of the transformation and `optax.apply_updates` instead.",
    )
