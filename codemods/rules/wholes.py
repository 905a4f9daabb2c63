"""What a program does with an optimizer as a whole, and cannot do with a train state."""

from __future__ import annotations

import ast

from codemods.analysis.handling import (
    BY_PATH,
    COUNTED,
    FORMATTED,
    KEYED,
    NESTED,
    TAKEN,
    TYPED,
)
from codemods.analysis.pickles import PICKLED, UNPICKLED, held_before
from codemods.analysis.uses import Use
from codemods.messages import message
from codemods.model import Refusal
from codemods.rewriting.edits import Edit, Keep, Replace
from codemods.rules import reasons, rule
from codemods.rules.context import Context

WHY = {
    COUNTED: (
        (
            "The leaves of the optimizer are counted or distinguished here; a train state has them "
            "in another order, with step counts among them."
        ),
        "Use the leaves of `optimizer.target`.",
    ),
    TYPED: (
        (
            "Its type is read here: each legacy optimizer had its own type, and all train states "
            "have the same."
        ),
        "Tell optimizers apart by a name of their own.",
    ),
    FORMATTED: (
        "A text that is formatted here reads an attribute of the optimizer by its name.",
        'Read it in the program, and format the value: `"{}".format(optimizer.target)`.',
    ),
    BY_PATH: (
        (
            "The leaves of the optimizer are distinguished by their paths here; a train state has "
            "other paths."
        ),
        "Use the paths within `optimizer.target`.",
    ),
    TAKEN: (
        "This code relies on it not being a train state, tuple or function; the new object is one.",
        "Tell them apart by something else, such as a class of your own around them.",
    ),
    KEYED: (
        (
            "The keys of the optimizer's state dict may be read here; that of a train state has "
            "other keys."
        ),
        'Ask for `["target"]` by that word, or use the state dict of `optimizer.target`.',
    ),
}


@rule("FO109", "an optimizer of complex parameters", "complex")
def complex_parameters(use: Use, context: Context) -> Refusal:
    """Five of the optimizers step complex parameters differently from optax. They stay if the
    parameters that they are created for are made of complex numbers.
    """
    assert use.cause is not None
    return reasons.complex_parameters(
        message(
            "Complex numbers are made in {}; of a complex gradient, this optimizer took the "
            "square, and optax takes its squared modulus.",
            use.cause,
        ),
        "Keep real and imaginary parts as parameters of their own, or write the rule as a "
        "transformation.",
    )


@rule("FO216", "an optimizer as a whole", "whole")
def whole(use: Use, context: Context) -> Edit | Keep | Refusal:
    """A train state goes where its optimizer went: into and out of functions, containers, `jit`,
    `pmap`, `scan` and checkpoints. Uses that only a legacy optimizer supports stay, with a reason.
    A transformation is a tuple, as no definition was: a test for tuples leaves it out. It holds
    functions, which cannot be pickled: a state is pickled without it, and gets it back.
    """
    if use.name == NESTED:
        return _is_tuple(use, context)
    if use.name in (PICKLED, UNPICKLED):
        return _without_functions(use, context)
    refuse = reasons.state if use.name == KEYED else reasons.unlike
    return refuse(*WHY[use.name])


def _without_functions(use: Use, context: Context) -> Edit | Keep:
    """What is pickled, or was: `optimizer = pickle.load(file)`."""
    if context.stepping.keeps_interface(use):
        return Keep()
    if use.name == PICKLED:
        return Replace(use.span, "{it}.replace(apply_fn=None, tx=None)")
    held = held_before(use, context.facts)
    return (
        Keep() if held is None else Replace(use.span, f"{{it}}.replace(tx={held}.tx)")
    )


def _is_tuple(use: Use, context: Context) -> Edit | Keep:
    """`isinstance(x, (list, tuple))`, of a definition among other things."""
    if context.stepping.keeps_interface(use):
        return Keep()
    assert isinstance(use.node, ast.Call)
    unit, around, span = use.unit, use.parent, use.span
    is_one = "isinstance({tested}, {optax}.GradientTransformation)"
    holes = [("tested", unit.span(use.node.args[0]))]
    template = f"{{it}} and not {is_one}"
    # not isinstance(x, tuple)
    if isinstance(around, ast.UnaryOp):
        holes.append(("test", span))
        span, around = unit.span(around), unit.parents[around]
        template = f"not {{test}} or {is_one}"
    if not isinstance(around, ast.stmt):
        template = f"({template})"
    return Replace(span, template, tuple(holes))
