"""The deprecated methods that computed gradients themselves."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from codemods.analysis.facts import Facts
from codemods.analysis.import_names import free_name
from codemods.analysis.uses import Use
from codemods.idioms.carried import typed
from codemods.inference.binding import arguments_of, values_of
from codemods.inference.objects import Container
from codemods.model import Refusal
from codemods.optimizers.base import RATE, is_plain
from codemods.optimizers.methods import LOSS_STEP
from codemods.rewriting.edits import (
    Edit,
    Holes,
    Replace,
    ReplaceStatement,
)
from codemods.rules import reasons, rule
from codemods.rules.apply_gradient import averaged_gradients
from codemods.rules.context import Context
from codemods.rules.hyper_params import keeps_rate, refuse_rate, with_rate
from codemods.sources.modules import Unit


@rule(
    "FO208",
    "compute_gradient is jax.value_and_grad",
    "optimizer.compute_gradient",
    "optimizer.compute_gradients",
    before="loss, grad = optimizer.compute_gradient(loss_fn)\n",
    after="loss, grad = jax.value_and_grad(loss_fn)(optimizer.params)\n",
)
def compute_gradient(use: Use, context: Context) -> Edit | Refusal:
    """It returned `(loss, gradient)`, or `(loss, auxiliary, gradient)` if the loss function returns
    a pair. If neither that function nor the targets show which, or a longer result is not assigned
    or returned in its own statement, the call stays, with a reason.
    """
    call = use.call
    loss = _loss(call)
    # jax.jit(optimizer.compute_gradient)
    if call is None or loss is None:
        return _refuse()
    holes = _holes(use)
    # optimizer.compute_gradient(loss_fn), anywhere in an expression: both give (loss, gradient)
    is_alone = _gives_pair(loss, context.facts) is False
    if is_alone and not _is_unpacked_otherwise(call, use.unit):
        return Replace(use.unit.span(call), VALUE_AND_GRAD, holes)
    assigned = _assigned(use, context)
    # loss, logits, grad = optimizer.compute_gradient(loss_fn)
    if assigned is None or len(assigned.targets) not in (0, 2 + assigned.gives_pair):
        return _refuse()
    *values, gradient = assigned.targets or (
        *_values(assigned, use.unit),
        free_name(use.unit, *GRADIENTS),
    )
    lines = [_evaluation(values, gradient, assigned.gives_pair)]
    if not assigned.targets:
        lines.append(assigned.whole + ", ".join((*values, gradient)))
    return ReplaceStatement(use.unit.span(assigned.statement), tuple(lines), holes)


class Assigned(NamedTuple):
    """A call whose result is assigned, or returned, in a statement of its own.

    The targets are source text: those of a tuple, or none where `whole` is what stands before the
    result. `gives_pair` tells that the loss function returns `(loss, auxiliary)`, which it or the
    targets show.
    """

    call: ast.Call
    statement: ast.stmt
    whole: str
    targets: list[str]
    gives_pair: bool


def _values(assigned: Assigned, unit: Unit) -> list[str]:
    """Names for what a loss function returns."""
    names = [("loss", "value", "loss_value"), ("aux", "auxiliary")]
    return [free_name(unit, *choices) for choices in names[: 1 + assigned.gives_pair]]


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
    """It returned `(optimizer, loss)`, or `(optimizer, loss, auxiliary)` if the loss function
    returns a pair. If its result is not assigned or returned in its own statement, the call stays,
    with a reason.
    """
    assigned = _assigned(use, context)
    if assigned is None or not _is_divisible(assigned, use, context):
        return _refuse()
    override = context.overrides.of(use)
    # optimizer.optimize(loss_fn, weight_decay=0.1)
    if override is not None and override.arg != "learning_rate":
        return reasons.overrides(
            f"This step overrides `{override.arg}`.",
            "Compute the gradient with `jax.value_and_grad`, then take a step.",
        )
    gradient = free_name(use.unit, *GRADIENTS)
    grads = averaged_gradients(use, context)
    if isinstance(grads, Refusal):
        return grads
    values = assigned.targets[1:] or _values(assigned, use.unit)
    evaluation = _evaluation(values, gradient, assigned.gives_pair)
    step = f"apply_gradients(grads={grads.replace('{grads}', gradient)})"
    # return optimizer.optimize(loss_fn)
    if not assigned.targets:
        step = ", ".join((step, *values))
    if override is not None:
        rate = (("rate", use.unit.span(override.value)),)
        return _set_rate(assigned, "{rate}", rate, (evaluation, step), use, context)
    if context.overrides.keeps_rate(use) and not context.stepping.keeps_interface(use):
        number = context.overrides.made_with.rate(use)
        if number is not None:
            return _set_rate(assigned, number, (), (evaluation, step), use, context)
        return keeps_rate(
            "Compute the gradient with `jax.value_and_grad` and pass `learning_rate=` to the step."
        )
    lines = (evaluation, f"{_before_step(assigned)}{{owner}}.{step}")
    return ReplaceStatement(use.unit.span(assigned.statement), lines, _holes(use))


def _before_step(assigned: Assigned) -> str:
    """What stands before the step: a target, or the beginning of the statement."""
    return assigned.whole or f"{assigned.targets[0]} = "


def _is_divisible(assigned: Assigned, use: Use, context: Context) -> bool:
    """Whether a step can be divided into the evaluation of its gradient, and a step with that."""
    given = len(values_of(assigned.call))
    # optimizer.optimize(loss_fn, learning_rate=rate): the helper hands all hyperparameters on
    if context.stepping.keeps_interface(use) and given > 1:
        return False
    # one argument is the loss function, and a second one the learning rate
    overrides = context.stepping.given_override(use) is not None
    if given != 1 + overrides:
        return False
    # optimizer, loss = optimizer.optimize(loss_fn), or optimizer, loss, aux = …
    if len(assigned.targets) not in (0, 2 + assigned.gives_pair):
        return False
    # the owner stands twice in the result: make_optimizer().optimize(loss_fn) would make two
    return is_plain(use.owner)


def _set_rate(
    assigned: Assigned,
    rate: str,
    holes: Holes,
    lines: tuple[str, str],
    use: Use,
    context: Context,
) -> Edit | Refusal:
    """A statement that sets the rate, a template, then the evaluation and the step of `lines`."""
    refusal = refuse_rate(use, context)
    if refusal is not None:
        return refusal
    evaluation, step = lines
    state = free_name(use.unit, "opt_state", "optimizer_state")
    rated, filters = with_rate("{owner}.opt_state", f"{RATE}={rate}", context)
    rated, supports = typed(rated, "{owner}.opt_state", use, context.stepping)
    templates = (
        f"{state} = {rated}",
        evaluation,
        f"{_before_step(assigned)}{{owner}}.replace(opt_state={state}).{step}",
    )
    span = use.unit.span(assigned.statement)
    return ReplaceStatement(
        span, templates, (*_holes(use), *holes), supports=filters + supports
    )


VALUE_AND_GRAD = "{jax}.value_and_grad({loss_fn})({owner}.params)"
"""A template for the loss and the gradient."""

GRADIENTS = ("grad", "grads", "gradient", "optimizer_grad")
"""Names for a variable that holds the gradient, best first."""


def _evaluation(values: list[str], gradient: str, gives_pair: bool) -> str:
    """The statement that computes the values of a loss function and its gradient."""
    several = ", ".join(values)
    # (loss, aux), grad = jax.value_and_grad(loss_fn, has_aux=True)(optimizer.params)
    targets = values[0] if len(values) == 1 else f"({several})"
    loss_fn = "{loss_fn}, has_aux=True" if gives_pair else "{loss_fn}"
    evaluation = VALUE_AND_GRAD.replace("{loss_fn}", loss_fn)
    return f"{targets}, {gradient} = {evaluation}"


def _loss(call: ast.Call | None) -> ast.expr | None:
    """The loss function that a call is given."""
    arguments = arguments_of(LOSS_STEP, call) if call is not None else None
    return (arguments or {}).get("loss_fn")


def _refuse() -> Refusal:
    """Why a call stays that is given more than a loss function, or whose result goes anywhere."""
    return reasons.statement_form(
        "This method is not called with a loss function alone, nothing shows whether that gives a "
        "pair, or the result is not assigned or returned in a statement of its own.",
        "Use `jax.value_and_grad(loss_fn)(optimizer.target)` and a step instead.",
    )


def _holes(use: Use) -> Holes:
    loss = _loss(use.call)
    assert loss is not None
    return (use.owner_hole, ("loss_fn", use.unit.span(loss)))


def _is_unpacked_otherwise(call: ast.Call, unit: Unit) -> bool:
    """Whether a call is unpacked to other than two targets."""
    statement = unit.parents.get(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    tuples = (target for target in targets if isinstance(target, ast.Tuple | ast.List))
    return any(len(target.elts) != 2 for target in tuples)


def _assigned(use: Use, context: Context) -> Assigned | None:
    """The call at a use with its assignment, if both and what the loss function gives are clear."""
    call = use.call
    loss = _loss(call)
    if call is None or loss is None:
        return None
    elements: list[ast.expr] = []
    statement = use.unit.parents.get(call)
    match statement:
        # loss, grad = optimizer.compute_gradient(loss_fn)
        case ast.Assign(targets=[ast.Tuple(elts=elements)]):
            whole = ""
        case ast.Assign(targets=[ast.Name(id=name)]):
            whole = f"{name} = "
        case ast.Return():
            whole = "return "
        case _:
            return None
    gives_pair = _gives_pair(loss, context.facts)
    # what a function out of view returns may be a pair
    if not gives_pair:
        gives_pair = _takes_auxiliary(elements, gives_pair)
    if gives_pair is None:
        return None
    texts = [*map(use.unit.source, elements)]
    return Assigned(call, statement, whole, texts, gives_pair)


def _takes_auxiliary(
    targets: Sequence[ast.expr], otherwise: bool | None
) -> bool | None:
    """Whether the targets of a result take what a pair has beside the loss, if they tell.

    If the loss function gives the other, it is an error before the migration and after it.
    """
    # loss, *more, grad = optimizer.compute_gradient(loss_fn)
    if any(isinstance(target, ast.Starred) for target in targets):
        return otherwise
    return {2: False, 3: True}.get(len(targets), otherwise)


def _gives_pair(loss: ast.expr, facts: Facts) -> bool | None:
    """Whether a loss function returns `(loss, auxiliary)`; None if that is not known."""
    # a loss function that is a parameter may be several
    functions = facts.functions(loss)
    if len(functions) != 1:
        return None
    values = facts.flow.engine.values_returned(functions[0].node)
    pairs = {_is_pair(value, facts) for value in values}
    return pairs.pop() if len(pairs) == 1 else None


def _is_pair(value: ast.expr, facts: Facts) -> bool | None:
    """Whether an expression is a pair, or else no tuple; None for what may be another tuple."""
    # return loss, logits
    if isinstance(value, ast.Tuple):
        is_unpacked = any(isinstance(element, ast.Starred) for element in value.elts)
        if not is_unpacked:
            return True if len(value.elts) == 2 else None
    may_be_tuple = any(isinstance(item, Container) for item in facts.objects(value))
    return None if may_be_tuple else False
