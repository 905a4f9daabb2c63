"""The transformation of an optimizer of the user's own class."""

from __future__ import annotations

import libcst as cst

from codemods.optimizers.arguments import UNSET_RATE, injectable
from codemods.optimizers.base import RATE
from codemods.optimizers.pieces import EQUAL, SEPARATOR
from codemods.template import expression


def custom_transformation(call: cst.Call, inject: bool, index: int | None) -> cst.BaseExpression:
    """What makes the optimizer, asked for its transformation.

    If the learning rate is to be an injected hyperparameter, the class is made anew with each rate, from a function of it.
    `index` is that of the rate among the arguments, if it is given.
    """
    if not inject:
        return expression("{call}.transformation()", call=call)
    args = [*call.args]
    given: cst.BaseExpression = cst.Float(UNSET_RATE)
    if index is not None:
        given = injectable(args[index].value)
        args[index] = args[index].with_changes(value=cst.Name(RATE))
    else:
        separated = [argument.with_changes(comma=SEPARATOR) for argument in args[-1:]]
        args = [*args[:-1], *separated, cst.Arg(cst.Name(RATE), keyword=cst.Name(RATE), equal=EQUAL)]
    template = "optax.inject_hyperparams(lambda learning_rate: {call}.transformation())(learning_rate={given})"
    return expression(template, call=call.with_changes(args=args), given=given)
