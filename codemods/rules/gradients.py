"""The deprecated methods that computed gradients themselves."""

from __future__ import annotations

import ast

from codemods.analysis.carried import typed
from codemods.analysis.facts import Facts
from codemods.analysis.uses import Use
from codemods.dataflow.definitions import Definitions
from codemods.flow.binding import arguments_of, values_of
from codemods.flow.objects import Container
from codemods.model import Refusal
from codemods.optimizers.base import Support, is_plain
from codemods.optimizers.interface import APPLY_GRADIENTS_WITH
from codemods.optimizers.methods import LOSS_STEP
from codemods.rewriting.edits import Argument, Edit, Replace, ReplaceStatement, RewriteCall
from codemods.rules import reasons, rule
from codemods.rules.context import Context, free_name
from codemods.rules.hyper_params import keeps_rate, refuse_rate, with_rate
from codemods.rules.objects import averaged_gradients
from codemods.sources.modules import Unit

LOSS_AND_GRADIENT = Support(
    name="loss_and_gradient",
    source='''def loss_and_gradient(params, loss_fn):
    """The loss, what `loss_fn` gives beside it if that is a pair, and the gradient."""
    alone = []

    def with_auxiliary(params):
        found = loss_fn(params)
        alone.append(isinstance(found, jax.Array))
        return (found, None) if alone[-1] else found

    (loss, auxiliary), grads = jax.value_and_grad(with_auxiliary, has_aux=True)(params)
    return (loss, grads) if alone[-1] else (loss, auxiliary, grads)
''',
    imports=("import jax",),
)

OPTIMIZE = Support(
    name="optimize",
    source='''def optimize(state, loss_fn):
    """A train state after a step, the loss, and what `loss_fn` gives beside it if that is a pair."""
    *values, grads = loss_and_gradient(state.params, loss_fn)
    return (state.apply_gradients(grads=grads), *values)
''',
    imports=(),
)

OPTIMIZE_WITH = Support(
    name="optimize_with",
    source='''def optimize_with(state, loss_fn, **hyper_params):
    """The same as a step of `apply_gradients_with` gives it, the loss, and what `loss_fn` gives beside it if that is a pair."""
    *values, grads = loss_and_gradient(state.params, loss_fn)
    return (apply_gradients_with(state, grads, **hyper_params), *values)
''',
    imports=(),
)


@rule(
    "FO208",
    "compute_gradient is jax.value_and_grad",
    "optimizer.compute_gradient",
    "optimizer.compute_gradients",
    before="loss, grad = optimizer.compute_gradient(loss_fn)\n",
    after="loss, grad = jax.value_and_grad(loss_fn)(optimizer.params)\n",
)
def compute_gradient(use: Use, context: Context) -> Edit | Refusal:
    """It returned `(loss, gradient)`, or `(loss, auxiliary, gradient)` if the loss function gives a
    pair. Where it is not in view which, or the result is not assigned in a statement of its own, a
    small function does the same.
    """
    call = use.call
    loss = _loss(call) if call is not None else None
    auxiliary = _gives_pair(loss, context.facts) if loss is not None else None
    if call is not None and auxiliary is False and not _is_unpacked_otherwise(call, use.unit):
        return Replace(use.unit.span(call), VALUE_AND_GRAD, _holes(use, context))
    if call is None or loss is None:
        return _refuse()
    holes = _holes(use, context)
    anywhere = f"{{support:{LOSS_AND_GRADIENT.name}}}({{owner}}.params, {{loss_fn}})"
    general = Replace(use.unit.span(call), anywhere, holes, (LOSS_AND_GRADIENT,))
    parts = _parts(use, context)
    if parts is None:
        return general
    call, statement, targets, auxiliary = parts
    lines: tuple[str, ...]
    if isinstance(statement.targets[0], ast.Name):
        values, gradient = free_name(use.unit, "values", "outputs"), free_name(use.unit, *GRADIENTS)
        lines = (
            _evaluation([values], gradient, auxiliary),
            f"{targets[0]} = (*{values}, {gradient})",
        )
    elif len(targets) == 2 + auxiliary:
        lines = (_evaluation(targets[:-1], targets[-1], auxiliary),)
    else:
        return general
    return ReplaceStatement(use.unit.span(statement), lines, holes)


@rule(
    "FO209",
    "optimize is value_and_grad, then a step",
    "optimizer.optimize",
    before="optimizer, loss = optimizer.optimize(loss_fn)\n",
    after=(
        "loss, grad = jax.value_and_grad(loss_fn)(optimizer.params)\n"
        "optimizer = optimizer.apply_gradients(grads=grad)\n"
    ),
)
def optimize(use: Use, context: Context) -> Edit | Refusal:
    """It returned `(optimizer, loss)`, or `(optimizer, loss, auxiliary)` if the loss function gives
    a pair.
    """
    general = _anywhere(use, context)
    parts = _parts(use, context)
    if parts is None:
        return general
    call, statement, targets, auxiliary = parts
    override = context.overrides.of(use)
    given = len(values_of(call))
    if context.keeps_interface(use) and given > 1:
        return general
    if len(targets) != 2 + auxiliary or given != 1 + (context.given_override(use) is not None):
        return general
    if not is_plain(use.owner):
        return general
    if override is not None and override.arg != "learning_rate":
        return reasons.overrides(
            f"This step overrides `{override.arg}`.",
            "Compute the gradient with `jax.value_and_grad`, then take a step.",
        )
    gradient = free_name(use.unit, *GRADIENTS)
    grads = averaged_gradients(use, context)
    if isinstance(grads, Refusal):
        return grads
    evaluation = _evaluation(targets[1:], gradient, auxiliary)
    step = f"apply_gradients(grads={grads.replace('{grads}', gradient)})"
    if override is None:
        if context.overrides.keeps_rate(use) and not context.keeps_interface(use):
            return keeps_rate(
                "Compute the gradient with `jax.value_and_grad` and pass `learning_rate=` to the "
                "step."
            )
        templates = (evaluation, f"{targets[0]} = {{owner}}.{step}")
        return ReplaceStatement(use.unit.span(statement), templates, _holes(use, context))
    refusal = refuse_rate(use, context)
    if refusal is not None:
        return refusal
    state = free_name(use.unit, "opt_state", "optimizer_state")
    rated, filters = with_rate("{owner}.opt_state", "learning_rate={rate}", context)
    rated, supports = typed(rated, "{owner}.opt_state", use, context, context.parameters)
    lines = (
        f"{state} = {rated}",
        evaluation,
        f"{targets[0]} = {{owner}}.replace(opt_state={state}).{step}",
    )
    holes = (*_holes(use, context), ("rate", use.unit.span(override.value)))
    return ReplaceStatement(use.unit.span(statement), lines, holes, supports=filters + supports)


def _anywhere(use: Use, context: Context) -> Edit | Refusal:
    """The step as a call of a helper, whatever becomes of its result."""
    call = use.call
    if call is None or _loss(call) is None or context.axes(use.things):
        return _refuse()
    given = [*call.args, *call.keywords]
    if len(given) > 1 and not context.keeps_interface(use):
        return reasons.overrides(
            "This step overrides hyperparameters, and its result is not assigned to names in a "
            "statement of its own.",
            "Compute the gradient with `jax.value_and_grad`, then take a step.",
        )
    if len(given) == 1 and context.overrides.keeps_rate(use) and not context.keeps_interface(use):
        return keeps_rate(
            "Compute the gradient with `jax.value_and_grad` and pass `learning_rate=` to the step."
        )
    supports = (
        (LOSS_AND_GRADIENT, APPLY_GRADIENTS_WITH, OPTIMIZE_WITH)
        if len(given) > 1
        else (LOSS_AND_GRADIENT, OPTIMIZE)
    )
    arguments = (
        Argument(None, template="{owner}"),
        *(Argument(None, index=index) for index in range(len(given))),
    )
    function = f"{{support:{supports[-1].name}}}"
    return RewriteCall(use.unit.span(call), function, arguments, (use.owner_hole,), supports)


VALUE_AND_GRAD = "{jax}.value_and_grad({loss_fn})({owner}.params)"
GRADIENTS = ("grad", "grads", "gradient", "optimizer_grad")


def _evaluation(values: list[str], gradient: str, auxiliary: bool) -> str:
    targets = values[0] if len(values) == 1 else f"({', '.join(values)})"
    call = (
        VALUE_AND_GRAD.replace("{loss_fn}", "{loss_fn}, has_aux=True")
        if auxiliary
        else VALUE_AND_GRAD
    )
    return f"{targets}, {gradient} = {call}"


def _loss(call: ast.Call) -> ast.expr | None:
    return (arguments_of(LOSS_STEP, call) or {}).get("loss_fn")


def _refuse() -> Refusal:
    return reasons.statement_form(
        "This method is not called with a loss function alone, or averages over devices.",
        "Use `jax.value_and_grad(loss_fn)(optimizer.target)` and a step instead.",
    )


def _holes(use: Use, context: Context) -> tuple[tuple[str, tuple[int, int, int, int]], ...]:
    call = use.call
    loss = _loss(call) if call is not None else None
    assert loss is not None
    return (use.owner_hole, ("loss_fn", use.unit.span(loss)))


def _is_unpacked_otherwise(call: ast.Call, unit: Unit) -> bool:
    """Whether a call is unpacked to other than two targets."""
    statement = unit.parents.get(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(
        isinstance(target, ast.Tuple | ast.List) and len(target.elts) != 2 for target in targets
    )


def _parts(use: Use, context: Context) -> tuple[ast.Call, ast.Assign, list[str], bool] | None:
    """The call, its assignment, the source of that one's targets, and whether the loss function gives a pair, if that is told."""
    call = use.call
    loss = _loss(call) if call is not None else None
    auxiliary = _gives_pair(loss, context.facts) if loss is not None else None
    match use.unit.parents.get(call) if call is not None else None:
        case ast.Assign(targets=[ast.Tuple() | ast.Name() as target]) as statement if (
            call and auxiliary is not None
        ):
            elements = target.elts if isinstance(target, ast.Tuple) else [target]
            return call, statement, [use.unit.source(element) for element in elements], auxiliary
    return None


def _gives_pair(loss: ast.expr, facts: Facts) -> bool | None:
    """Whether a loss function returns `(loss, auxiliary)`; None when that is not plain to see."""
    functions = facts.functions(loss)
    if len(functions) != 1:
        return None
    pairs = {_is_pair(value, facts) for value in Definitions.returned(functions[0])}
    return pairs.pop() if len(pairs) == 1 else None


def _is_pair(value: ast.expr, facts: Facts) -> bool | None:
    """Whether an expression is a pair, or else no tuple; None for another tuple, and for what may be one."""
    if isinstance(value, ast.Tuple) and not any(
        isinstance(element, ast.Starred) for element in value.elts
    ):
        return True if len(value.elts) == 2 else None
    return None if any(isinstance(item, Container) for item in facts.objects(value)) else False
